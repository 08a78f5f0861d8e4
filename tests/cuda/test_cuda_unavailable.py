"""Where there is no CUDA: no driver, an unusable one, or one without a device."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import producers

ABSENT = "/nonexistent/libcuda.so.1"


@pytest.fixture(autouse=True)
def needs_device():
    """These tests need none."""


def run(code, **environment):
    return producers.run_python(f"import hamr, numpy as np\n{code}", **environment).stdout


REFUSALS = {
    "Buffer": "hamr.Buffer(3, 'f4', {allocator!r})",
    "Buffer of nothing": "hamr.Buffer(0, 'f4', {allocator!r})",
    "copy": "hamr.Buffer(3).copy({allocator!r})",
    "move": "hamr.Buffer(3).move({allocator!r})",
    "upstream": "hamr.buffer_float(hamr.buffer_allocator_{allocator}, 3, 1.0)",
}
OTHERS = {
    "access": "hamr.Buffer(3).get_cuda_accessible()",
    "stream": "hamr.Stream(device=0)",
    "event": "hamr.Event()",
    "device": "hamr.device(0).__enter__()",
    "peer": "hamr.peer_access(0, 1)",
    "memory": "hamr.memory_info(0)",
    "import": "hamr.buffer(Foreign())",
}
FOREIGN = """
class Foreign:
    __cuda_array_interface__ = dict(shape=(3,), typestr='<f4', data=(4096, False), version=3)
"""


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm"])
def test_every_allocator_says_what_was_looked_for(allocator):
    calls = [text.format(allocator=allocator) for text in REFUSALS.values()]
    if allocator == "cuda_vmm":  # which upstream does not have
        calls.pop()
    check_refusals([*calls, *(OTHERS.values() if allocator == "cuda" else [])], ABSENT, ABSENT)


def check_refusals(calls, library, words):
    output = run(
        f"""
import json
{FOREIGN}
found = []
for call in {calls!r}:
    try:
        eval(call)
        found.append((call, "passed", "", []))
    except Exception as error:
        found.append((call, type(error).__name__, str(error), list(getattr(error, "tried", []))))
print(json.dumps(found))
""",
        HAMR_CUDA_LIBRARY=library,
    )
    for call, kind, message, tried in json.loads(output):
        assert kind == "BackendUnavailable", (call, kind, message)
        assert tried == [library], call
        assert words in message, (call, message)


def test_the_loaders_words_are_kept(tmp_path):
    broken = tmp_path / "libcuda.so.1"
    broken.write_text("this is no library " * 100)
    check_refusals(list(OTHERS.values()), str(broken), "ELF")


def test_a_library_without_the_driver_is_refused():
    check_refusals([OTHERS["access"]], "libc.so.6", "cuInit")


@pytest.mark.skipif(not driver.EMULATED, reason="no other number of devices with a real driver")
def test_no_devices_is_no_cuda():
    library = os.environ["HAMR_CUDA_LIBRARY"]
    found = json.loads(run("import json; print(json.dumps(hamr.backends()['cuda']))", **NONE))
    assert found["available"] is False
    assert found["tried"] == [library]
    assert "CUDA_ERROR_NO_DEVICE" in found["reason"]
    output = run(
        "try: hamr.Buffer(3, allocator='cuda')\n"
        "except hamr.BackendUnavailable as error: print(error.backend, error)",
        **NONE,
    )
    assert output.startswith("cuda ")
    assert "CUDA_ERROR_NO_DEVICE" in output


NONE = {"HAMR_EMULATOR_DEVICES": "0"}


@pytest.mark.skipif(not driver.EMULATED, reason="no other version of a real driver")
def test_an_old_driver_is_refused_with_both_versions():
    output = run(
        "try: hamr.Buffer(3, allocator='cuda')\n"
        "except hamr.BackendUnavailable as error: print(error)",
        HAMR_EMULATOR_VERSION="10020",
    )
    assert "10.2" in output
    assert "11.2" in output


@pytest.mark.parametrize("environment", [{"HAMR_CUDA_LIBRARY": ABSENT}, NONE], ids=["none", "0"])
def test_everything_else_works(environment):
    if environment is NONE and not driver.EMULATED:
        pytest.skip("no other number of devices with a real driver")
    output = run(
        """
import pickle
b = hamr.buffer(np.arange(6.0).reshape(2, 3))
assert np.asarray(b.get_host_accessible()).sum() == 15
assert np.asarray(b.get_device_accessible()).sum() == 15
assert hamr.get_host_allocator() == hamr.Allocator.malloc
assert hamr.get_device_allocator() == hamr.Allocator.malloc
assert not hasattr(b, "__cuda_array_interface__")
assert not b.cuda_accessible() and b.host_accessible()
c = b.copy("cpp", dtype="i2"); c.append(7); c.resize(10, 3)
assert pickle.loads(pickle.dumps(c))[6].item() == 7
b.synchronize(); hamr.trim(); hamr.stats(); b.set_stream(5)
assert hamr.backends()["cuda"]["devices"] == []
print(c)
""",
        **environment,
    )
    assert output == "{0, 1, 2, 3, 4, 5, 7, 3, \n3, 3}\n"


def test_an_array_that_also_is_on_the_host_is_taken_there():
    output = run(
        """
class Both:
    def __init__(self):
        self.array = np.arange(3.0)
        self.__array_interface__ = self.array.__array_interface__
b = hamr.buffer(Both())
print(b.source_protocol, b)
""",
        HAMR_CUDA_LIBRARY=ABSENT,
    )
    assert output == "__array_interface__ {0, 1, 2}\n"


def test_info_shows_the_reason():
    output = run("from hamr.cli import main; main(['info'])", HAMR_CUDA_LIBRARY=ABSENT)
    assert (
        "cuda: not available; allocators cuda, cuda_async, cuda_uva, cuda_host, cuda_vmm\n"
        in output
    )
    assert f"looked for {ABSENT}: " in output
    assert f"HAMR_CUDA_LIBRARY={ABSENT}  (" in output


@pytest.mark.skipif(driver.DEVICES > 0, reason="there is a CUDA device")
def test_this_process_has_none():
    assert hamr.backends()["cuda"]["available"] is False
    with pytest.raises(hamr.BackendUnavailable, match="cuda"):
        hamr.Buffer(3, allocator="cuda")
    assert np.asarray(hamr.Buffer(3, fill=1).get_device_accessible()).sum() == 3


def test_a_library_whose_name_is_no_text_is_named_all_the_same():
    code = "import hamr; print(ascii((hamr.backends()['cuda'], hamr.devices())))"
    command = [sys.executable, "-c", code]
    name = b"HAMR_CUDA_LIBRARY", b"/nonexistent/\xff\xfe.so"
    done = subprocess.run(command, env=dict([*os.environb.items(), name]), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert rb"/nonexistent/\ufffd\ufffd.so" in done.stdout
