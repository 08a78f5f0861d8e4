"""The examples of examples/pygpu that bring kernels."""

import shutil
import sys

import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver
from tests.support import emulation
from tests.support.paths import ROOT
from tests.support.processes import launch

EXAMPLES = ROOT / "examples" / "pygpu"
LAST = "[1990. 1992. 1994. 1996. 1998.]\n"


def nvrtc():
    """The environment in which there is NVRTC; None where there is none."""
    if driver.EMULATED:
        return {"HAMR_NVRTC_LIBRARY": str(emulation.build(emulation.NVRTC))}
    try:
        pygpu.compile("")
    except hamr.BackendUnavailable:
        return None
    return {}


def output_of(name, env=None):
    status, output = launch([sys.executable, "-W", "error", str(EXAMPLES / name)], 120, env)
    assert status == 0, output
    return output


def test_a_kernel_from_ptx():
    assert output_of("saxpy_ptx.py") == LAST + "[ 996.  997.  998.  999. 1000.]\n"


@pytest.mark.skipif(driver.DEVICES > 0 and nvrtc() is None, reason="no NVRTC")
def test_a_kernel_that_is_compiled():
    output = output_of("saxpy_nvrtc.py", nvrtc())
    assert output.startswith("wrong.cu(1): error")
    assert output.endswith(LAST)


@pytest.mark.skipif(driver.EMULATED or not shutil.which("nvcc"), reason="no nvcc, or no device")
def test_a_library_of_nvccs():
    assert output_of("nvcc_library.py") == "code 0\n" + LAST
