"""What there is of SYCL for tests: dpctl with a device that has USM, and dpnp beside it.

Processes of their own run it: it starts threads, and OpenCL's loader reads once, when
it starts, where the runtime of the CPU is.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
from importlib import metadata, util
from pathlib import Path

from tests.support.processes import launch

#: Both loaders of OpenCL's read it: the one that comes with SYCL, and a distribution's, which the
#: process may have already.
SETTING = "OCL_ICD_VENDORS"
SYSTEM = Path("/etc/OpenCL/vendors")

#: The variable that says that this process finds SYCL, and the files of tests/sycl for such ones.
CHOSEN = "HAMR_TEST_SYCL"
IN_PROCESS = ("test_sycl_memory.py", "test_sycl_dpctl.py", "test_sycl_opencl.py")

_PROBE = """
import dpctl, dpctl.memory
device = dpctl.SyclQueue().sycl_device
assert device.has_aspect_usm_shared_allocations and device.has_aspect_usm_host_allocations
print(device.name)
"""


@functools.cache
def environment() -> dict[str, str]:
    """What lets OpenCL's loader find the CPU runtime of the package intel-opencl-rt, and others."""
    if os.environ.get(SETTING) or os.environ.get("OCL_ICD_FILENAMES"):
        return {}
    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return {}
    found = [str(f.locate().resolve()) for f in files if f.name == "libintelocl.so"]
    if not found:
        return {}
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for file in SYSTEM.glob("*.icd"):
        shutil.copy(file, folder)
    Path(folder, "intel.icd").write_text(found[0] + "\n")
    return {SETTING: folder}


@functools.cache
def absent() -> str:
    """Why there is no SYCL here; "" if there is."""
    if util.find_spec("dpctl") is None:
        return "dpctl is not installed"
    status, output = launch([sys.executable, "-c", _PROBE], 120, environment())
    return f"dpctl has no device with USM: {output[-300:]}" if status else ""


@functools.cache
def dpnp_absent() -> str:
    """Why there is no dpnp here; "" if there is."""
    return absent() or ("" if util.find_spec("dpnp") else "dpnp is not installed")
