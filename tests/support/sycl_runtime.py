"""What there is of SYCL for tests: dpctl with a device that has USM, and dpnp beside it.

Processes of their own run it: it starts threads, and OpenCL's loader reads once, when
it starts, where the runtime of the CPU is.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib import metadata, util

from tests.support.processes import launch

SETTING = "OCL_ICD_FILENAMES"

_PROBE = """
import dpctl, dpctl.memory
device = dpctl.SyclQueue().sycl_device
assert device.has_aspect_usm_shared_allocations and device.has_aspect_usm_host_allocations
print(device.name)
"""


def environment() -> dict[str, str]:
    """What lets OpenCL's loader find the CPU runtime of the package intel-opencl-rt."""
    if os.environ.get(SETTING):
        return {}
    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return {}
    found = [str(f.locate().resolve()) for f in files if f.name == "libintelocl.so"]
    return {SETTING: found[0]} if found else {}


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
