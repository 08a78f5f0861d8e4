"""Two vendors' platforms in one process: what Debian has, and Intel's runtime for CPUs from PyPI.

In a process of its own, since OpenCL's loader reads once where the platforms are.
"""

import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.support.processes import launch

SYSTEM = Path("/etc/OpenCL/vendors")


def intel() -> str:
    """The library of the package intel-opencl-rt; "" where that is not installed."""
    try:
        files = metadata.files("intel-opencl-rt") or []
    except metadata.PackageNotFoundError:
        return ""
    return next((str(f.locate().resolve()) for f in files if f.name == "libintelocl.so"), "")


@pytest.mark.libraries
@pytest.mark.skipif(not intel(), reason="intel-opencl-rt is not installed")
def test_all_on_two_platforms(tmp_path):
    for file in SYSTEM.glob("*.icd"):
        shutil.copy(file, tmp_path)
    (tmp_path / "intel.icd").write_text(intel() + "\n")
    setting = {"OCL_ICD_VENDORS": str(tmp_path)}
    probe = "import hamr; print([d['platform'] for d in hamr.backends()['opencl']['devices']])"
    status, output = launch([sys.executable, "-c", probe], 60, setting)
    assert status == 0, output
    if "Intel" not in output:
        pytest.skip(f"the loader does not find Intel's platform: {output}")
    tests = str(Path(__file__).with_name("test_opencl.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
    status, output = launch(command, 300, setting)
    assert status == 0, output
    assert "skipped" not in output
