"""Build hook: compiles the two extensions. Everything else is in pyproject.toml."""

from setuptools import setup

from build_support.extensions import COMMANDS, EXTENSIONS, OPTIONS

setup(cmdclass=COMMANDS, ext_modules=EXTENSIONS, options=OPTIONS)
