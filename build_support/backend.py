"""The PEP 517 backend: setuptools, asking PyPI only for the build tools this machine lacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from build_support import offline, toolchain

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, Any] | None


@contextmanager
def _tidy() -> Iterator[None]:
    try:
        yield
    finally:
        shutil.rmtree(toolchain.ROOT / "python" / "hamr.egg-info", ignore_errors=True)


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Name the build's requirements, refusing first what no package can mend."""
    toolchain.check_platform()
    toolchain.check_headers()
    offline.check(packages=False)
    with _tidy():
        usual = build_meta.get_requires_for_build_wheel(config_settings)
    return [*usual, "pybindgen==0.22.*", *([] if offline.wanted() else toolchain.missing())]


get_requires_for_build_editable = get_requires_for_build_wheel


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """Name what a source archive needs: setuptools alone."""
    with _tidy():
        return build_meta.get_requires_for_build_sdist(config_settings)


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel."""
    with _tidy():
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the extensions in place and a wheel that points at them."""
    with _tidy():
        return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Build a source archive."""
    with _tidy():
        return build_meta.build_sdist(sdist_directory, config_settings)
