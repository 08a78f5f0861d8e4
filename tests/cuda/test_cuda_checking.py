"""HAMR_CHECK on devices: late kernels, libraries that go on writing, and no false report."""

import pytest

from tests.cuda import driver
from tests.support.processes import run_code

START = '''
import ctypes, random, time, warnings
import hamr
import numpy as np
from hamr.allocators import _core
from tests.cuda import driver

told = []
warnings.showwarning = lambda message, *more: told.append(message)
warnings.simplefilter("always", hamr.MemoryMisuse)
N = 100_000
stream = driver.Stream()

def found(kind):
    """What was told of since the last call; of other kinds nothing but work on
    freed memory, which is seen where the driver tells of it."""
    hamr.check_memory()
    kinds = {each.kind for each in told}
    assert kinds <= {kind, "used"}, kinds
    assert "used" in kinds or kind != "written" or hamr.checked_backends()["cuda"]
    these = [each for each in told if each.kind == kind]
    told.clear()
    return these

def settled():
    assert hamr.check_memory() == []  # what the device had to be waited for is poisoned now

def clean(address):
    """Memory may have the pattern of its time before."""
    driver.write(address, np.zeros(N, "f4"))
    return address

def write(address, count=100):
    """When the device was waited for, and the pattern is there."""
    byte, end = ctypes.c_ubyte(), time.monotonic() + 30
    with driver.on(0):
        while byte.value != 0xDB:
            assert time.monotonic() < end, byte
            driver.do("cuMemcpyDtoH_v2", ctypes.byref(byte), address + 4 * count - 1, 1)
        driver.do("cuCtxSynchronize")
    driver.write_late(stream, address, count, 7.0)
    stream.synchronize()
'''

pytestmark = pytest.mark.usefixtures("needs_device")


def checked(code, **settings):
    return run_code(START + code, env={"HAMR_CHECK": "1", **settings})


@pytest.mark.parametrize(
    ("allocator", "known"),
    [
        *((allocator, known) for allocator in ("cuda", "cuda_async") for known in (False, True)),
        ("cuda_uva", True),
        ("cuda_host", True),  # else it is released at a time of hamr's choice
    ],
)
def test_a_late_kernel_is_found(allocator, known):
    """Whether hamr knows of its stream or, since somebody has the address, of none."""
    checked(
        f"""
buffer = hamr.Buffer(N, "f4", {allocator!r}, fill=1)
address = buffer.ptr if {known} else hamr.memory_snapshot().allocations[-1]["address"]
def freed(): buffer.close()
freed()
write(address + 400)
(found,) = found("written")
assert (found.allocator, found.device) == ({allocator!r}, -1 if "host" in {allocator!r} else 0)
assert found.address == address and found.size == 4 * N
assert 400 <= found.offset < 404 and found.written <= 400
assert "freed" in [frame["name"] for frame in found.freed["stack"]]
settled()
"""
    )


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize(("number", "name"), [(1, "cupy"), (2, "torch"), (3, "numba")])
def test_a_library_that_goes_on_writing_is_found(number, name):
    checked(
        f"""
from hamr._base.library import core
address = clean(core().AllocateFor({number}, 0, 4 * N, 0))
core().FreeFor(address)
write(address)
(found,) = found("written")
assert (found.library, found.allocator, found.offset) == ({name!r}, "cuda", 0)
"""
    )


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_a_library_that_frees_twice_is_found(library):
    checked(
        f"""
from ctypes import PyDLL, c_void_p
_, library = _core.hooks()
hooks = PyDLL(library._name)  # both libraries free with Python's lock
free, number = dict(
    cupy=(lambda: hooks.hamr_cupy_free(None, c_void_p(address), 0), _core.CUPY),
    torch=(lambda: hooks.hamr_torch_free(c_void_p(address), c_void_p(N), 0, None), _core.TORCH),
)[{library!r}]
address = _core.allocate(number, 0, N, 0)
def first(): free()
def second(): free()
first()
second()
(one,) = found("freed")  # another thread may have told of it before
assert (one.kind, one.library, one.allocator) == ("freed", {library!r}, "cuda"), one
assert (one.address, one.size, one.device, one.written) == (address, N, 0, 0)
assert "first" in [f["name"] for f in one.freed["stack"]]
assert "second" in [f["name"] for f in one.freed_again["stack"]]
assert "freed again at" in str(one)
second()
(one,) = found("freed")
assert (one.kind, one.library, one.size) == ("freed", "any", 0), one
assert "none has" in str(one)
assert hamr.stats()["allocators"]["cuda"]["live"] == 0
"""
    )


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize("locked", [True, False])
def test_a_library_in_c_has_a_stack_where_it_has_the_lock(locked):
    checked(
        f"""
from ctypes import CDLL, PyDLL, c_size_t, c_void_p
_, library = _core.hooks()
hooks = ({locked} and PyDLL or CDLL)(library._name)
hooks.hamr_torch_alloc.restype = c_void_p
def take(): return hooks.hamr_torch_alloc(c_size_t(4 * N), 0, None)
def give(): hooks.hamr_torch_free(c_void_p(address), c_size_t(4 * N), 0, None)
with hamr.record_memory() as record:
    address = take()
    give()
hamr.check_memory()
stacks = [event["stack"] for event in record.snapshot.events if event["library"] == "torch"]
address = clean(take())
give()
write(address)
(found,) = found("written")
for taken, given in (stacks, (found.allocated["stack"], found.freed["stack"])):
    if {locked}:
        assert "take" in [f["name"] for f in taken] and "give" in [f["name"] for f in given]
    else:
        assert not taken and not given, (taken, given)
"""
    )


@pytest.mark.skipif(not driver.POOLED, reason="HAMR_CUDA_POOL=0")
@pytest.mark.parametrize("library", ["CUPY", "NUMBA"])
def test_a_library_in_python_has_a_stack(library):
    """Its call of hamr lets go of the lock, in case that it has to wait."""
    checked(
        f"""
def take(): return _core.allocate(_core.{library}, 0, 4 * N, 0)
def give(): _core.free(address)
address = clean(take())
give()
write(address)
(found,) = found("written")
assert "take" in [frame["name"] for frame in found.allocated["stack"]]
assert "give" in [frame["name"] for frame in found.freed["stack"]]
"""
    )


def test_work_that_was_enqueued_before_is_no_fault(emulator):
    checked(
        """
from hamr._base.library import core
own = hamr.Stream(device=0)
for _ in range(20):
    buffer = hamr.Buffer(N, "f4", "cuda_async", fill=1, stream=own)
    buffer.fill(2)
    buffer.close()
own.synchronize()
settled()
"""
    )


def test_a_walk_without_a_fault_tells_of_none():
    checked(
        """
warnings.simplefilter("error")
import numpy as np
numbers, mine, streams = random.Random(3), [], [hamr.Stream(device=0) for _ in range(3)]
for step in range(600):
    if mine and numbers.random() < 0.5:
        buffer, value = mine.pop(numbers.randrange(len(mine)))
        if numbers.random() < 0.5:
            assert (buffer.get() == value).all()
        elif numbers.random() < 0.5:
            buffer = buffer.copy(numbers.choice(["cuda", "cuda_async", "malloc", "cuda_host"]))
            assert (buffer.get() == value).all()
    else:
        allocator = numbers.choice(["cuda", "cuda_async", "cuda_uva", "cuda_host", "malloc"])
        size = numbers.choice([1, 100, 10_000])
        more = {} if allocator == "malloc" else {"stream": numbers.choice([None, *streams])}
        mine.append((hamr.Buffer(size, "u1", allocator, fill=step % 200, **more), step % 200))
        if numbers.random() < 0.2:
            mine[-1][0].ptr
    if numbers.random() < 0.03:
        assert hamr.check_memory() == []
mine.clear()
settled()
""",
        HAMR_CHECK_BYTES="60KB",
    )


@pytest.mark.usefixtures("emulator")
def test_memory_that_is_kept_is_there_before_there_is_none():
    """It takes, and looks at, all that there is: a real device has too much."""
    checked(
        """
free, _ = hamr.memory_info(0)
for _ in range(6):
    hamr.Buffer(free // 3, "u1", "cuda").close()
settled()
""",
        HAMR_CHECK_BYTES="100TB",
    )


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async"])
def test_a_capture_has_no_pattern(allocator):
    """Each replay would write it, to memory that others have by then."""
    checked(
        f"""
import ctypes
with driver.on(0):
    captured = driver.get("cuStreamCreate", 1)
own = hamr.Stream(captured, device=0)
buffer = hamr.Buffer(N, "f4", {allocator!r}, fill=1, stream=own, transfer="async")
buffer.synchronize()
graph, calls = ctypes.c_uint64(), dict()
with driver.on(0):
    driver.do("cuStreamBeginCapture_v2", captured, 2)
    if driver.emulator is None:
        buffer.close()
    else:
        calls = driver.emulator.count_calls(buffer.close)
    driver.do("cuStreamEndCapture", captured, ctypes.byref(graph))
    if driver.emulator is None:
        driver.do("cuGraphGetNodes", graph.value, None, ctypes.byref(nodes := ctypes.c_size_t()))
        assert nodes.value <= ({allocator!r} == "cuda_async"), nodes.value  # its free is one
    driver.do("cuGraphDestroy", graph.value)
assert not any("Memset" in name for name in calls), calls
settled()
hamr.Buffer(N, "f4", {allocator!r}, fill=1, stream=own, transfer="async").close()
settled()
"""
    )


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_vmm"])
def test_what_others_have_goes_on(allocator):
    """A handle keeps the elements, whoever has closed the buffer."""
    checked(
        f"""
buffer = hamr.Buffer(N, "f4", {allocator!r}, fill=3)
with buffer.share() as handle:
    buffer.close()
    settled()
    opened = hamr.open_shared(handle)
assert (opened.get() == 3).all()
settled()
assert (opened.get() == 3).all()
"""
    )


@pytest.mark.parametrize("allocator", ["cuda", "cuda_host", "cuda_uva", "cuda_vmm"])
def test_the_pattern_is_not_enqueued_on_a_stream_that_ended(allocator):
    checked(
        f"""
for number in range(8):
    named = driver.Stream()
    b = hamr.Buffer(N, "f4", "{allocator}", fill=1, stream=named.handle, device=0, transfer="async")
    copied = b.copy("cuda") if number % 2 else None
    if number % 4 < 2:
        named.synchronize()
    del named
    del b, copied
settled()
assert driver.emulator is None or not driver.emulator.violations(), driver.emulator.violations()
"""
    )
