"""Buffer(…) as C reads it, and as Python does: the same buffers, the same errors."""

import inspect
import itertools

import numpy as np
import pytest

import hamr
from hamr._buffer.constructing import construct

SHAPES = [
    3,
    0,
    -1,
    2**62,
    2**70,
    True,
    (2, 3),
    (),
    (2, -1),
    (2, True),
    (2.0,),
    [2, 3],
    "3",
    None,
    np.int64(3),
]
TYPES = ["f4", "float64", np.float32, np.dtype("i2"), float, int, "xx", None, 3, ["f4"], "bfloat16"]
ALLOCATORS = [
    None, "malloc", "cpp", hamr.Allocator.malloc, hamr.Allocator.same, hamr.Allocator.none, 1, -1,
    99, "cuda", "cpu", "bad", 1.5, True,
]  # fmt: skip
FILLS = [
    None,
    1,
    2.5,
    True,
    1j,
    300,
    -1,
    2**63,
    2**70,
    -(2**63) - 1,
    np.float32(2),
    "x",
    [1, 2, 3],
    float("nan"),
]
MORE = [
    {}, {"data": [1, 2, 3]}, {"device": None}, {"device": -1}, {"device": "cpu"},
    {"device": "cuda"}, {"device": 0}, {"device": 2**40}, {"device": "bad"}, {"stream": None},
    {"stream": 0}, {"transfer": "sync"}, {"transfer": 9}, {"fil": 1}, {"shape": 3},
]  # fmt: skip


def calls():
    for shape in SHAPES:
        yield (shape,), {}
        yield (), {"shape": shape}
    for shape, dtype in itertools.product([3, (2, 2)], TYPES):
        yield (shape, dtype), {}
        yield (shape,), {"dtype": dtype}
    for allocator in ALLOCATORS:
        yield (3, "f4", allocator), {}
        yield (3,), {"allocator": allocator, "dtype": "f4"}
    for dtype, fill in itertools.product(["u1", "f4", "c16", "bool"], FILLS):
        yield (3, dtype), {"fill": fill}
    for more, fill in itertools.product(MORE, [None, 1]):
        yield (3,), {**more, "fill": fill}
        yield (3, "f4", "malloc"), {**more, "fill": fill}
    yield (), {}
    yield (3, "f4", "malloc", 1), {}


def outcome(make, arguments, named):
    """What is made, or raised; elements where they are initialised."""
    try:
        made = make(*arguments, **named)
    except Exception as error:
        return type(error), str(error)
    known = named.get("fill") is not None or named.get("data") is not None
    elements = str(made) if known else None
    return (
        type(made),
        made.shape,
        made.typestr,
        made.allocator,
        made.device,
        made.transfer,
        elements,
    )


class Kind(hamr.Buffer):
    """A subclass without a constructor of its own."""


@pytest.mark.parametrize("kind", [hamr.Buffer, Kind])
def test_both_constructors_do_the_same(kind):
    hamr.Buffer(1)  # C leaves it to Python until the library is loaded
    for arguments, named in calls():
        expected = outcome(lambda *a, **n: construct(kind, *a, **n), arguments, named)
        assert outcome(kind, arguments, named) == expected, (arguments, named)


def test_who_is_made():
    assert type(Kind(3)) is Kind
    assert type(hamr.Buffer.__new__(Kind, 3)) is Kind
    for make in (hamr.Handle, hamr._native.Array, lambda: hamr.Buffer.__new__(hamr.Handle)):
        with pytest.raises(TypeError, match="cannot create"):
            make()
    with pytest.raises(TypeError):
        hamr.Buffer.__new__(int, 3)


def test_a_stream_of_a_block_is_taken():
    with hamr.Stream() as stream:
        assert hamr.Buffer(3).stream is stream
        assert hamr.buffer(bytearray(3)).stream is stream
    assert hamr.Buffer(3).stream is not stream


def test_signatures():
    class Own(hamr.Buffer):
        def __new__(cls, name: str):
            return super().__new__(cls, 3, fill=len(name))

    expected = inspect.signature(construct)
    for kind in (hamr.Buffer, Kind):
        assert (
            list(inspect.signature(kind).parameters.values())
            == list(expected.parameters.values())[1:]
        )
    assert list(inspect.signature(Own).parameters) == ["name"]
    assert str(Own("ab")) == "{2, 2, 2}"
    shown = inspect.signature(hamr.buffer).parameters
    assert {n: p.default for n, p in shown.items() if p.default is not p.empty} == {
        "stream": None, "transfer": hamr.Transfer.sync_host, "dtype": None,
        "sync": hamr.Transfer.sync_host, "wait": None,
    }  # fmt: skip
    assert [n for n, p in shown.items() if p.kind is p.KEYWORD_ONLY] == ["dtype", "sync", "wait"]
    assert hamr.buffer.__doc__.startswith("A buffer that shares")
    assert (hamr.buffer.__module__, hamr.buffer.__qualname__) == ("hamr", "buffer")


class Unlike:
    """An element type's name whose comparison fails."""

    def __hash__(self):
        return hash("float32")

    def __eq__(self, other):
        raise RuntimeError("compared")


def test_errors_of_comparisons_come_through():
    hamr.Buffer(3, "float32")  # known from now on
    with pytest.raises(RuntimeError, match="compared"):
        hamr.Buffer(3, Unlike())


NUMBERS = [1, 2.5, True, -1, 300, 2**63, 2**70, 1j, float("nan")]
OTHERS = [
    b"abc",
    [1, 2, 3],
    (1, 2, 3),
    np.arange(3),
    np.float32(2),
    np.arange(4),
    "abc",
    None,
    object(),
]


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16", "bool"])
def test_plain_writing_is_as_any_other(dtype, monkeypatch):
    """By ``fill``, to all elements and to some."""
    changes = {
        "fill": lambda b, v: b.fill(v),
        "all": lambda b, v: b.__setitem__(..., v),
        "some": lambda b, v: b.__setitem__(slice(0, 3), v),
    }

    def results():
        found = []
        for change, value in itertools.product(
            changes.values(), [*NUMBERS, *OTHERS, hamr.Buffer(3, fill=7)]
        ):
            buffer = hamr.Buffer(3, dtype, fill=1)
            try:
                change(buffer, value)
            except Exception as error:
                found.append((type(error), str(error).split(" object at ")[0]))
            found.append(str(buffer))
        return found

    quick = results()
    for name in ("fill_number", "write_plain"):
        monkeypatch.setattr(f"hamr._native.{name}", lambda array, value: False)
    assert results() == quick
