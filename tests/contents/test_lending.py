"""Access for writing in host memory: on_host() and on(); see tests/cuda for devices."""

import contextlib
import gc
import textwrap
import threading

import numpy as np
import pytest

import hamr
from tests.support.processes import run_code
from tests.support.producers import DTYPES, LAYOUTS, cast

MODES = ["r", "w", "rw"]
ABSENT = [name for name, row in hamr.backends().items() if not row["available"]]


@pytest.fixture(params=["malloc", "cpp", "shared"])
def ramp(request):
    """A buffer of 0 ... 5, of hamr's memory or NumPy's."""
    if request.param == "shared":
        return hamr.buffer(np.arange(6, dtype="f4"))
    return hamr.Buffer(6, "f4", request.param, data=np.arange(6, dtype="f4"))


@pytest.mark.parametrize("name", ["on_host", "on"])
def test_what_is_written_is_the_buffers(ramp, name):
    access = ramp.on_host("rw") if name == "on_host" else ramp.on("host", "rw")
    with access as array:
        assert type(array) is np.ndarray
        array += 1
        array[0] = -1
    assert np.asarray(ramp).tolist() == [-1, 2, 3, 4, 5, 6]
    with access as array:  # once more
        array[...] = 0
    assert not np.asarray(ramp).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_type_and_layout(dtype, layout):
    source = LAYOUTS[layout](cast(np.arange(12).reshape(3, 4), dtype))
    buffer = hamr.buffer(source)
    if buffer.readonly:
        source = source.copy()
        buffer = hamr.buffer(source)
    with buffer.on_host("rw") as array:
        assert array.shape == source.shape
        assert array.dtype == source.dtype
        array[...] = cast(np.ones(array.shape), dtype)
    assert np.array_equal(source, cast(np.ones(source.shape), dtype))


OVERLAPPING = {
    "windows": lambda a: np.lib.stride_tricks.as_strided(a, (4, 3), (4, 4)),
    "repeated": lambda a: np.lib.stride_tricks.as_strided(a, (3, 6), (0, 4)),
    "half a step": lambda a: np.ndarray((11,), "f4", a, 0, (2,)),
    "interleaved": lambda a: np.lib.stride_tricks.as_strided(a, (2, 2, 2), (4, 8, 4)),
}


@pytest.mark.parametrize("make", OVERLAPPING.values(), ids=OVERLAPPING)
@pytest.mark.parametrize("mode", ["w", "rw"])
def test_elements_that_lie_on_each_other_are_for_reading(make, mode):
    array = np.arange(6, dtype="f4")
    buffer = hamr.buffer(make(array))
    with pytest.raises(ValueError, match=r"strides .* lie on each other: accepted .* copy\(\)"):
        buffer.on_host(mode).__enter__()
    with buffer.on_host("r") as seen:
        assert np.array_equal(seen, make(array))
    with buffer.copy().on_host(mode) as copied:
        copied[...] = 1
    assert np.array_equal(array, np.arange(6))


def test_elements_that_interleave_and_lie_apart_are_lent():
    array = np.zeros(8, "f4")
    apart = np.lib.stride_tricks.as_strided(array, (3, 2), (8, 12))
    with hamr.buffer(apart).on_host("rw") as lent:
        lent[...] = [[1, 2], [3, 4], [5, 6]]
    assert array.tolist() == [1, 0, 3, 2, 5, 4, 0, 6]


def test_without_dimensions_and_without_elements():
    number, none = hamr.Buffer((), "i4", fill=3), hamr.Buffer((0, 3), "i4")
    with number.on_host("rw") as array, none.on_host("rw") as nothing, none.on_host("w"):
        array += 1
        assert nothing.shape == (0, 3)
    assert number.item() == 4


def test_for_reading_it_is_read_only(ramp):
    with ramp.on_host("r") as array:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        assert array.tolist() == [0, 1, 2, 3, 4, 5]


def test_after_the_block_writes_are_errors(ramp):
    with ramp.on_host("rw") as array:
        part = array[1:]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert part.tolist() == [1, 2, 3, 4, 5]


def test_read_only_buffers(ramp):
    source = np.arange(3)
    source.flags.writeable = False
    buffer = hamr.buffer(source)
    for mode in ("w", "rw"):
        with pytest.raises(ValueError, match="read-only"), buffer.on_host(mode):
            pass
    with buffer.on_host("r") as array:
        assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("second", MODES)
@pytest.mark.parametrize("first", MODES)
def test_two_at_once(ramp, first, second):
    """Only readers are several, by whatever buffer."""
    same = [ramp, ramp[2:4], ramp[::-1], hamr.buffer(ramp), ramp.reshape(2, 3)]
    refused = first != "r" or second != "r"
    for one in same:
        with ramp[2:].on_host(first):
            access = one.on_host(second)
            if refused:
                with pytest.raises(
                    hamr.InUse, match=f'an access for "{first}".* one for "{second}"'
                ):
                    access.__enter__()
            else:
                with access as array:
                    assert array.shape == one.shape
            with ramp[:2].on_host(second) as array:
                assert array.shape == (2,)
    with ramp.on_host(second):
        pass


def test_what_the_block_was_given_may_be_used_in_any_way(ramp):
    with ramp.on_host("rw") as array:
        shared = hamr.buffer(array)
        with shared.on_host("rw") as inner:
            inner += 1
            hamr.buffer(inner)[0] = 7
            with pytest.raises(hamr.InUse):
                shared.fill(9)
        shared[1] = 8
        array[2] = 9
    assert np.asarray(ramp).tolist() == [7, 8, 9, 4, 5, 6]


CHANGES = {
    "fill": lambda b: b.fill(1),
    "item": lambda b: b.__setitem__(0, 1),
    "set": lambda b: b.set([1], at=2),
    "assign": lambda b: b.assign([1, 2]),
    "append": lambda b: b.append(3),
    "resize": lambda b: b.resize(2),
    "grow": lambda b: b.resize(2000),
    "reserve": lambda b: b.reserve(100),
    "move": lambda b: b.move("cpp" if b.allocator == hamr.Allocator.malloc else "malloc"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_being_written_is_not_changed(ramp, change):
    with ramp.on_host("rw") as array:
        with pytest.raises(hamr.InUse, match='an access for "rw"'):
            change(ramp)
        array += 1
    assert np.asarray(ramp).tolist() == [1, 2, 3, 4, 5, 6]
    with ramp.on_host("r"):
        change(ramp)
    change(ramp)


@pytest.mark.parametrize("end", ["close", "free"])
def test_the_buffer_may_end_inside(ramp, end):
    view = ramp[:]
    with ramp.on_host("rw") as array:
        getattr(ramp, end)()
        array += 1
    assert np.asarray(view).tolist() == [1, 2, 3, 4, 5, 6]


def test_what_a_closed_buffer_says(ramp):
    access = ramp.on_host("rw")
    ramp.close()
    with pytest.raises(hamr.FreedBuffer):
        access.__enter__()


def test_exceptions_end_the_access(ramp):
    def fail():
        with ramp.on_host("rw") as array:
            array[0] = 9
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with ramp.on_host("rw") as array:
        assert array[0] == 9  # in place


def test_an_access_is_for_one_block_at_a_time(ramp):
    access = ramp.on_host("r")
    with access, pytest.raises(RuntimeError, match="in use"):
        access.__enter__()
    with pytest.raises(RuntimeError, match="has not begun"):
        access.__exit__(None, None, None)


def test_an_access_that_is_left_ends(ramp):
    access = ramp.on_host("rw")
    access.__enter__()
    with pytest.raises(hamr.InUse):
        ramp.fill(1)
    del access
    gc.collect()
    ramp.fill(1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("host", "a"), ValueError, "mode is 'a': accepted are 'r', 'w' and 'rw'"),
        (("host", None), TypeError, "mode is None: accepted are 'r', 'w' and 'rw'"),
        (("host", 1), TypeError, "mode is 1: accepted are 'r', 'w' and 'rw'"),
        (("disk", "r"), ValueError, "space is 'disk'"),
        (("host", "r", 0), ValueError, "device is 0: accepted is None"),
        (("cuda", "r", "0"), ValueError, "device is '0'"),
        (("cuda", "r", -7), ValueError, "device is -7"),
    ],
)
def test_arguments_are_checked_before_the_block(ramp, arguments, error, message):
    with pytest.raises(error, match=message):
        ramp.on(*arguments)


@pytest.mark.skipif(not ABSENT, reason="no runtime is absent")
def test_a_runtime_that_is_absent_is_said(ramp):
    for space in ABSENT:
        with pytest.raises(hamr.BackendUnavailable), ramp.on(space, "rw"):
            pass
    ramp.fill(1)


def test_threads_take_turns_or_are_refused():
    buffer = hamr.Buffer(1, "i8", fill=0)
    done, refused = [], []

    def count():
        for _ in range(300):
            try:
                with buffer.on_host("rw") as array:
                    array[0] += 1
                done.append(1)
            except hamr.InUse:
                refused.append(1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert buffer[0].item() == len(done)
    assert len(done) + len(refused) == 1200


def test_one_access_is_for_one_of_several_threads(ramp, monkeypatch):
    """Threads that begin it at once: whoever is refused leaves nothing open."""
    begin = hamr._native.open_access

    def meet(barrier):
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(0.2)

    first, second = threading.Barrier(2), threading.Barrier(2)

    def late(*arguments):
        meet(first)
        return begin(*arguments)

    monkeypatch.setattr(hamr._native, "open_access", late)
    access, refused = ramp.on_host("r"), []

    def enter():
        try:
            with access:
                meet(second)
        except RuntimeError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    assert len(refused) < 2
    with ramp.on_host("rw") as array:
        array += 1


def test_without_numpy_it_is_a_memoryview():
    run_code(
        textwrap.dedent(
            """
        import sys
        sys.modules["numpy"] = None
        import hamr
        b = hamr.Buffer((2, 2), "f4", fill=1)
        with b.on_host("rw") as view:
            assert type(view) is memoryview and view.shape == (2, 2)
            view[0, 1] = 5
        assert str(b) == "{{1, 5},\\n {1, 1}}", str(b)
        try:
            view[0, 0] = 1
        except ValueError:
            pass
        else:
            raise SystemExit("a view is writable after the block")
        with b.on_host("r") as view:
            assert view.readonly
            kept = memoryview(view)
        assert kept.tolist() == [[1, 5], [1, 1]]
        """
        )
    )


def test_a_forked_child_ends_what_the_parent_began():
    run_code(
        textwrap.dedent(
            """
        import os
        import hamr
        b = hamr.Buffer(3, "f4", fill=1)
        with b.on_host("rw") as array:
            array += 1
            child = os.fork()
            if not child:
                array += 1
        if not child:
            with b.on_host("rw") as array:
                os._exit(array.tolist() != [3, 3, 3])
        assert os.waitpid(child, 0)[1] == 0
        assert str(b) == "{2, 2, 2}"
        """
        )
    )
