"""NVIDIA's libraries that packages of PyPI have installed beside Python."""

from __future__ import annotations

import os
import sys


def libraries_of_packages(stem: str) -> tuple[str, ...]:
    """The files whose names begin with ``stem``, as "libnvrtc.so.", newest first."""
    found = []
    for folder in dict.fromkeys(sys.path):
        packages = os.path.join(folder, "nvidia")
        for package in _names_in(packages):
            libraries = os.path.join(packages, package, "lib")
            found += [
                os.path.join(libraries, file)
                for file in _names_in(libraries)
                if file.startswith(stem)
            ]
    return tuple(sorted(found, key=lambda path: _version_of(path, stem), reverse=True))


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _version_of(path: str, stem: str) -> tuple[int, ...]:
    numbers = os.path.basename(path).removeprefix(stem).split(".")
    return tuple(int(number) for number in numbers if number.isdecimal())
