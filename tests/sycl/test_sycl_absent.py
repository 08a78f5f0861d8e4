"""What a machine without SYCL's library is told, and where the library is looked for."""

import os
import sys

from tests.support.processes import launch, run_code

SCRIPT = """
import hamr
for name in ("sycl_device", "sycl_shared", "sycl_host"):
    try:
        hamr.Buffer(3, "f8", name)
    except hamr.BackendUnavailable as error:
        assert error.backend == "sycl" and error.tried == ("/nowhere/libsycl.so",), error.tried
        print(error)
assert not hamr.backends()["sycl"]["available"]
"""


def test_memory_that_is_not_there():
    output = run_code(SCRIPT, env={"HAMR_SYCL_LIBRARY": "/nowhere/libsycl.so"})
    assert output.count("looked for /nowhere/libsycl.so: ") == 3
    assert "cannot open shared object file" in output


def test_info_says_what_was_looked_for(tmp_path):
    """Beside what is in the process, the package dpctl that Python would import."""
    package = tmp_path / "dpctl"
    package.mkdir()
    library = package / "libDPCTLSyclInterface.so"
    library.write_text("no library")
    command = [sys.executable, "-m", "hamr", "info"]
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    status, output = launch(command, 60, {"PYTHONPATH": path, "HAMR_SYCL_PACKAGE": ""})
    assert status == 0, output
    line = next(line for line in output.splitlines() if "sycl: " in line)
    for words in (
        f"looked for libDPCTLSyclInterface.so, {library}",
        "libDPCTLSyclInterface.so: cannot open shared object file",
        f"{library}: ",
    ):
        assert words in output, line
