"""The table of names in docs/pygpu-names.md is what the modules list."""

import os
import subprocess
import sys

import pytest

from build_support import pygpu_table
from tests.support.paths import ROOT

PYBINDGPU = pygpu_table.recorded(pygpu_table.PYBINDGPU)["names"]
PYCUDA = pygpu_table.recorded(pygpu_table.PYCUDA)["names"]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_page_is_what_the_modules_list(seed):
    command = [sys.executable, "-m", "build_support.pygpu_table", "--check"]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_each_name_of_pybindgpus_is_here():
    ours = pygpu_table.own()
    assert not {*PYBINDGPU[""]} - {*ours[""]}
    assert not {*PYBINDGPU["gpuarray"]} - {*ours["gpuarray"]}
    missing = {
        f"{place}.{name}"
        for place, names in PYBINDGPU.items()
        if place not in ("", "gpuarray")
        for name in {*names} - {*ours[place]}
    }
    assert not missing


@pytest.mark.parametrize("name", pygpu_table.IN_PLACE)
def test_what_has_another_name_is_pycudas(name):
    place, rest = name.split(".", 1)
    assert rest in PYCUDA[place]


def test_names_of_all_types_are_one():
    names = [f"A_{t}" for t in pygpu_table.TYPES]
    assert pygpu_table.collapsed([*names, "B_int16", "c"]) == ["A_<dt>", "B_int16", "c"]
    assert pygpu_table.exists("cudaDeviceProp.pciBusID")
    assert pygpu_table.exists("nvml.device")
    assert not pygpu_table.exists("cudaDeviceProp.nothing")
    assert not pygpu_table.exists("hamr.nothing.at.all")


def test_what_is_left_to_numpy_is_not_there():
    here = pygpu_table.own()["GPUArray"]
    assert "sum" not in here
    assert {"fill", "ptr", "__getitem__"} <= {*here}


def test_names_are_found_in_documentation():
    page = """
.. module:: pycuda.driver
.. function:: init(flags=0)
.. class:: Stream(flags=0)

    .. method:: synchronize()

    .. attribute:: handle
.. function:: to_device(buffer)
.. module:: pycuda.compiler
.. function:: compile(source)
"""
    assert pygpu_table.directives(page) == {
        "pycuda.driver": ["init", "Stream", "Stream.synchronize", "Stream.handle", "to_device"],
        "pycuda.compiler": ["compile"],
    }
