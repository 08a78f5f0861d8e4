"""DLPack's tensors keep the memory until their deleters are called, wherever that is."""

import ctypes
import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import hamr
from tests.support import dlpack_structs as dl
from tests.support.processes import run_code, run_script, scaled


def live():
    gc.collect()
    host = hamr.stats()["spaces"]["host"]
    return host["live"], host["adopted"]


@pytest.fixture(autouse=True)
def balanced():
    """Each test leaves the counters as it found them."""
    hamr.Buffer(1)
    before = live()
    yield
    assert live() == before


def comes_true(condition):
    """What is asked of the interpreter it does soon, on its main thread."""
    limit = time.monotonic() + 20
    while not condition() and time.monotonic() < limit:
        time.sleep(0.001)
    return condition()


@pytest.fixture(params=[False, True], ids=["legacy", "versioned"])
def version(request):
    return (1, 0) if request.param else None


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.resize(10**6),
        lambda b: b.free(),
        lambda b: b.close(),
        lambda b: b.move("cpp"),
        lambda b: b.swap(hamr.Buffer(3)),
        lambda b: b.assign(np.zeros(10**5)),
        lambda b: None,
    ],
    ids=["resize", "free", "close", "move", "swap", "assign", "del"],
)
@pytest.mark.parametrize("through", ["buffer", "handle", "view"])
def test_tensors_outlive_what_happens_to_the_buffer(change, version, through):
    buffer = hamr.Buffer((10, 100), fill=2)
    exporter = {
        "buffer": lambda b: b, "handle": lambda b: b.get_host_accessible(), "view": lambda b: b[2:]
    }[through](buffer)  # fmt: skip
    shape = exporter.shape
    capsule = exporter.__dlpack__(max_version=version)
    del exporter
    change(buffer)
    del buffer
    refill = [hamr.Buffer((10, 100), fill=9) for _ in range(4)]
    seen = dl.consume(capsule)
    del capsule
    assert seen.shape == shape
    assert (seen.array("f8") == 2).all()
    seen.delete_with_lock()
    del refill


def test_arrays_of_numpys_outlive_the_buffer():
    buffer = hamr.Buffer(1000, fill=2)
    array = np.from_dlpack(buffer)
    part = array[10:]
    buffer.close()
    del array
    refill = [hamr.Buffer(1000, fill=9) for _ in range(4)]
    assert part.sum() == 2 * 990
    before = live()[0]
    del part
    assert live()[0] == before - 1
    del refill


def test_an_owner_goes_with_the_tensor(version):
    class Owner(bytearray):
        pass

    owner = Owner(b"1234")
    watch = weakref.ref(owner)
    capsule = hamr.buffer(owner).__dlpack__(max_version=version)
    del owner
    gc.collect()
    assert watch() is not None
    del capsule
    assert watch() is None


def test_an_unused_capsule_gives_the_memory_back(version):
    before = live()
    capsule = hamr.Buffer(10).__dlpack__(max_version=version)
    assert live()[0] == before[0] + 1
    del capsule
    assert live() == before


def test_an_unused_capsule_leaves_an_error_under_way():
    class Last:
        def __del__(self):
            try:
                raise OSError
            except OSError:
                pass

    memory = np.ones(4)

    def capsule():
        return hamr.Buffer.from_pointer(memory.ctypes.data, 4, owner=Last()).__dlpack__()

    # What an expression has made so far goes while the error is under way.
    with pytest.raises(ZeroDivisionError):
        [capsule(), 1 // 0]


def test_a_used_capsule_does_nothing_any_more(version):
    before = live()
    capsule = hamr.Buffer(10, fill=3).__dlpack__(max_version=version)
    seen = dl.consume(capsule)
    del capsule
    gc.collect()
    assert live()[0] == before[0] + 1
    assert seen.array("f8").sum() == 30
    seen.delete()
    assert comes_true(lambda: live() == before)


def test_a_capsule_that_ends_after_its_tensor(version):
    before = live()
    capsule = hamr.Buffer(10).__dlpack__(max_version=version)
    dl.consume(capsule).delete_with_lock()
    assert live() == before
    del capsule
    assert live() == before


def test_a_consumer_uses_each_capsule_once():
    buffer = hamr.Buffer(10, fill=3)

    class Exporter:
        capsule = buffer.__dlpack__(max_version=(1, 0) if dl.NEW_NUMPY else None)

        def __dlpack__(self, **arguments):
            return self.capsule

        def __dlpack_device__(self):
            return buffer.__dlpack_device__()

    array = np.from_dlpack(Exporter())
    with pytest.raises(ValueError, match="PyCapsule"):
        np.from_dlpack(Exporter())
    assert array.sum() == 30
    del Exporter.capsule


def test_a_consumer_that_never_renames(version):
    """It reads as long as it holds the capsule, which then ends as an unused one."""
    before = live()
    capsule = hamr.Buffer(10, fill=3).__dlpack__(max_version=version)
    seen = dl.read(capsule)
    gc.collect()
    assert seen.array("f8").sum() == 30
    del seen, capsule
    assert live() == before


def test_many_tensors_of_a_buffer():
    buffer = hamr.Buffer(10, fill=3)
    before = sys.getrefcount(buffer)
    tensors = [dl.consume(buffer.__dlpack__(max_version=(1, 0))) for _ in range(100)]
    assert sys.getrefcount(buffer) == before
    assert len({t.address for t in tensors}) == 100
    assert {t.data for t in tensors} == {buffer.ptr}
    for tensor in tensors:
        tensor.delete_with_lock()


# Threads.


@pytest.mark.parametrize("size", [10, 5 << 20])
@pytest.mark.parametrize("delete", [dl.Seen.delete, dl.delete_on_thread], ids=["no lock", "thread"])
def test_deleters_without_the_lock(delete, size, version):
    before = live()
    watched = np.ones(3)
    references = sys.getrefcount(watched)
    for _ in range(20):
        delete(dl.consume(hamr.Buffer(size, "u1").__dlpack__(max_version=version)))
        delete(dl.consume(hamr.buffer(watched).__dlpack__(max_version=version)))
    assert comes_true(lambda: live() == before)
    assert sys.getrefcount(watched) == references


def test_more_deleters_than_the_interpreter_can_be_asked_for():
    """Its queue has room for some dozens."""
    before = live()
    tensors = [dl.consume(hamr.Buffer(10).__dlpack__()) for _ in range(200)]
    nothing = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
    full = 0
    while ctypes.pythonapi.Py_AddPendingCall(nothing, None) == 0:
        full += 1
        if full > 10**6:
            break
    for tensor in tensors:
        dl.delete_on_thread(tensor)
    assert comes_true(lambda: live() == before)


def test_a_main_thread_that_is_busy_elsewhere():
    """What other threads delete meanwhile is given back by the calls that make more."""
    most = 0

    def work():
        nonlocal most
        for _ in range(1000):
            dl.delete_on_thread(dl.consume(hamr.Buffer(10).__dlpack__()))
            most = max(most, hamr.stats()["spaces"]["host"]["live"])

    before = live()[0]
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()  # asked for nothing until then
    assert most <= before + 3


def test_threads_that_make_and_delete():
    wrong = []

    def work(delete):
        try:
            for i in range(scaled(2000, 100)):
                seen = dl.consume(hamr.Buffer(10, fill=i).__dlpack__(max_version=(1, 0)))
                assert seen.array("f8")[9] == i
                delete(seen)
        except BaseException as error:
            wrong.append(error)

    before = live()
    kinds = [dl.Seen.delete, dl.Seen.delete_with_lock, dl.delete_on_thread] * 2
    threads = [threading.Thread(target=work, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert comes_true(lambda: live() == before)


def test_after_there_was_a_subinterpreter():
    """CPython then takes every thread for one that has the lock, if asked the usual way."""
    run_code(
        """
import ctypes, time, hamr
from tests.support import dlpack_structs as dl
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.destroy(interpreters.create())
class Owner:
    ended = 0
    def __del__(self):
        Owner.ended += 1
memory = (ctypes.c_double * 4)()
for i in range(2000):
    buffer = hamr.Buffer.from_pointer(ctypes.addressof(memory), 4, owner=Owner())
    dl.delete_on_thread(dl.consume(buffer.__dlpack__()), wait=False)
    del buffer
limit = time.monotonic() + 20
while Owner.ended < 2000 and time.monotonic() < limit:
    time.sleep(0.001)
assert Owner.ended == 2000, Owner.ended
""",
    )


def test_a_subinterpreter_ends_nothing_of_ours():
    """A finaliser is code of the interpreter that hamr is in, as its object is."""
    run_code(
        """
import gc, hamr
from tests.support import dlpack_structs as dl
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
class Owner:
    ended_in = []
    def __del__(self):
        current = interpreters.get_current()
        Owner.ended_in.append(int(current[0] if isinstance(current, tuple) else current))
import ctypes
memory = (ctypes.c_double * 4)()
try:
    other = interpreters.create("legacy")
except (TypeError, ValueError):
    other = interpreters.create(isolated=False)
for kind in "PYFUNCTYPE", "CFUNCTYPE":
    buffer = hamr.Buffer.from_pointer(ctypes.addressof(memory), 4, owner=Owner())
    seen = dl.consume(buffer.__dlpack__())
    del buffer
    code = f"import ctypes; ctypes.{kind}(None, ctypes.c_void_p)({seen.deleter})({seen.address})"
    interpreters.run_string(other, code + "; sum(i for i in range(1000))")
    hamr.Buffer(1).__dlpack__()
assert Owner.ended_in == [0, 0], Owner.ended_in
""",
    )


# The interpreter's end.


@pytest.mark.parametrize("case", ["handlers", "teardown", "threads", "after"])
def test_at_the_end_of_the_interpreter(case):
    """Each case is a function of scripts/dlpack_exits.py, which says what it shows."""
    for _ in range(scaled(200 if case == "threads" else 50, 3)):
        assert run_script("dlpack_exits", case) == "ended well\n"


def test_a_long_chain_of_tensors_is_undone_without_recursion():
    memory = np.ones(4)
    capsule = None
    for _ in range(200_000):
        capsule = hamr.Buffer.from_pointer(memory.ctypes.data, 4, owner=capsule).__dlpack__()
    del capsule
