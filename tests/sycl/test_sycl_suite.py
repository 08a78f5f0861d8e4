"""SYCL with Intel's runtime for processors: hamr's own tests of it, and the backends' conformance.

In processes of their own, since OpenCL's loader reads once where the runtimes are.
"""

import re
import sys
from importlib import util
from pathlib import Path

import pytest

from build_support import go_tests, toolchain
from tests.support import opencl_runtime, openmp_runtime, sycl_runtime
from tests.support.paths import ROOT
from tests.support.processes import launch

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.skipif(bool(sycl_runtime.absent()), reason=sycl_runtime.absent()),
]
HERE = Path(__file__).parent


def unexpected_skips(output):
    """Why tests were skipped, but for OpenCL and OpenMP where this machine has none."""
    reasons = re.findall(r"^SKIPPED \[\d+\] \S+: (.*)$", output, re.MULTILINE)
    assert bool(reasons) == bool(re.search(r"\b\d+ skipped\b", output)), output
    for name, runtime in (("opencl", opencl_runtime), ("openmp", openmp_runtime)):
        if runtime.absent():
            reasons = [r for r in reasons if not r.lower().startswith(f"no {name}: ")]
    return reasons


def test_in_a_process_that_finds_it():
    files = [str(HERE / name) for name in sycl_runtime.IN_PROCESS]
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    setting = {**sycl_runtime.environment(), sycl_runtime.CHOSEN: "1"}
    status, output = launch([*command, *files], 300, setting)
    assert status == 0, output
    assert unexpected_skips(output) == []


def test_pairs_with_every_other_space():
    """Beside emulated CUDA, HIP's stand-in, OpenCL and OpenMP; and steps at random over all."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "sycl or walk"]
    setting = {**sycl_runtime.environment(), sycl_runtime.CHOSEN: "1"}
    setting |= {"HAMR_TEST_CUDA": "emulator", "HAMR_TEST_HIP": "1"}
    status, output = launch([*command, str(HERE.parent / "pairs")], 300, setting)
    assert status == 0, output[-8000:]
    assert unexpected_skips(output) == []


@pytest.mark.skipif(toolchain.find_go() is None, reason="there is no Go")
def test_conformance():
    """The suite that all backends pass, on the device as a whole and in parts."""
    package = util.find_spec("dpctl").submodule_search_locations[0]
    setting = {"HAMR_SYCL_LIBRARY": f"{package}/libDPCTLSyclInterface.so"}
    # As the other Go tests are run, whose packages are compiled already.
    checks = "-gcflags=all=-d=checkptr" if go_tests.no_race_detector() else "-race"
    go = ["env", "-C", str(ROOT), toolchain.find_go(), "test", checks, "-count=1", "-v"]
    setting |= sycl_runtime.environment()
    status, output = launch([*go, "./backends/sycl"], 300, setting)
    assert status == 0, output[-8000:]
    skipped = set(re.findall(r"--- SKIP: (\S+)", output))
    assert not {s for s in skipped if not re.match(r"TestConformance/sycl_\w+:[1-9]", s)}, output
    for test in ("TestConformance/sycl_device:0", "TestConformanceInParts/sycl_host:2"):
        assert f"--- PASS: {test}/Between" in output
