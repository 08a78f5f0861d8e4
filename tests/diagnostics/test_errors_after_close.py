"""After close() a buffer or handle answers everything by FreedBuffer; after free() it goes on."""

import copy
import pickle

import numpy as np
import pytest

import hamr

ARGUMENTS = {
    "on": ("host", "r"),
    "on_cuda": ("r",),
    "on_host": ("r",),
    "accessible": ("host",),
    "append": (1,),
    "assign": (1,),
    "astype": ("f4",),
    "fill": (1,),
    "get": (np.zeros(3),),
    "move": ("cpp",),
    "reserve": (9,),
    "resize": (9,),
    "set": (1,),
    "set_stream": (0,),
    "set_transfer": ("sync",),
    "swap": (hamr.Buffer(1),),
}
# These say what may be said of a closed buffer, or make another one.
STILL_WORK = {"close", "from_pointer", "source_protocol"}


def public_names(cls):
    return ["__array_interface__", *sorted(n for n in dir(cls) if not n.startswith("_"))]


OPERATORS = {
    "len": len,
    "index": lambda b: b[0],
    "slice": lambda b: b[:],
    "write": lambda b: b.__setitem__(0, 1),
    "write all": lambda b: b.__setitem__(..., 1),
    "iter": iter,
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "in": lambda b: 1 in b,
    "equal": lambda b: b == 1,
    "less": lambda b: b < 1,
    "plus": lambda b: b + 1,
    "minus": lambda b: -b,
    "format": lambda b: f"{b:.2f}",
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
}
SHARING = {
    "memoryview": memoryview,
    "buffer": hamr.buffer,
    "asarray": np.asarray,
    "array": np.array,
    "typed asarray": lambda b: np.asarray(b, "f4"),
    "append": lambda b: hamr.Buffer(1).append(b),
    "assign": lambda b: hamr.Buffer(1).assign(b),
    "set": lambda b: hamr.Buffer(1).set(b),
    "write": lambda b: hamr.Buffer(1).__setitem__(..., b),
    "fill": lambda b: hamr.Buffer(1).fill(b),
    "get into": lambda b: hamr.Buffer(3, fill=0).get(b),
    "swap": lambda b: hamr.Buffer(1).swap(b),
}


def closed_buffer():
    buffer = hamr.Buffer(3, "f8", fill=1)
    buffer.close()
    return buffer


def closed_handle():
    handle = hamr.Buffer(3, "f8", fill=1).get_host_accessible()
    handle.close()
    return handle


@pytest.mark.parametrize("name", [n for n in public_names(hamr.Buffer) if n not in STILL_WORK])
def test_every_method_and_property_of_a_closed_buffer(name):
    closed = closed_buffer()
    with pytest.raises(hamr.FreedBuffer, match="closed"):
        getattr(closed, name)(*ARGUMENTS.get(name, ()))


@pytest.mark.parametrize("name", [n for n in public_names(hamr.Handle) if n not in STILL_WORK])
def test_every_method_and_property_of_a_closed_handle(name):
    closed = closed_handle()
    with pytest.raises(hamr.FreedBuffer, match="closed"):
        getattr(closed, name)(*ARGUMENTS.get(name, ()))


@pytest.mark.parametrize("operation", OPERATORS.values(), ids=OPERATORS)
def test_every_operator_of_a_closed_buffer(operation):
    closed = closed_buffer()
    with pytest.raises(hamr.FreedBuffer, match="closed"):
        operation(closed)


@pytest.mark.parametrize("operation", SHARING.values(), ids=SHARING)
@pytest.mark.parametrize("make", [closed_buffer, closed_handle])
def test_nothing_takes_a_closed_one(make, operation):
    closed = make()
    expected = hamr.FreedBuffer
    if operation is SHARING["swap"] and isinstance(closed, hamr.Handle):
        expected = TypeError
    with pytest.raises(expected):
        operation(closed)


@pytest.mark.parametrize("make", [closed_buffer, closed_handle])
def test_closing_twice_is_harmless(make):
    closed = make()
    closed.close()
    closed.close()
    assert "closed" in repr(closed)
    assert "closed" in str(closed)


@pytest.mark.parametrize("get", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_with_closes(get):
    with get(hamr.Buffer(3)) as entered:
        assert entered.shape == (3,)
    with pytest.raises(hamr.FreedBuffer):
        entered.shape  # noqa: B018
    with pytest.raises(ZeroDivisionError), get(hamr.Buffer(3)) as entered:
        1 / 0  # noqa: B018
    assert "closed" in repr(entered)


def test_what_was_made_before_stays_valid(allocator):
    buffer = hamr.Buffer(3, "i4", allocator, data=[1, 2, 3])
    handle, view, array, shown = (
        buffer.get_host_accessible(),
        buffer[1:],
        np.asarray(buffer),
        memoryview(buffer),
    )
    from_handle = np.asarray(handle)
    buffer.close()
    handle.close()
    assert array.tolist() == from_handle.tolist() == shown.tolist() == [1, 2, 3]
    assert view.get().tolist() == [2, 3]
    array[2] = 9
    assert view.get().tolist() == [2, 9]


def test_closing_a_view_leaves_its_buffer_open():
    buffer = hamr.Buffer(3, "i4", fill=1)
    buffer[1:].close()
    buffer.get_host_accessible().close()
    assert buffer.get().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "use",
    [
        lambda b: b.resize(2, 5),
        lambda b: b.append([5, 5]),
        lambda b: b.assign([5, 5]),
        lambda b: (b.reserve(9), b.resize(2, 5)),
        lambda b: b.swap(hamr.Buffer(2, "i4", fill=5)),
    ],
)
def test_a_freed_buffer_may_grow_again(use, allocator):
    buffer = hamr.Buffer((2, 3), "i4", allocator, fill=1)
    array = np.asarray(buffer)
    buffer.free()
    buffer.free()
    assert (buffer.shape, buffer.size(), buffer.capacity(), buffer.nbytes) == ((0,), 0, 0, 0)
    assert str(buffer) == "{}"
    assert np.asarray(buffer).tolist() == []
    assert buffer.allocator == allocator
    use(buffer)
    assert buffer.get().tolist() == [5, 5]
    assert array.tolist() == [[1, 1, 1]] * 2
