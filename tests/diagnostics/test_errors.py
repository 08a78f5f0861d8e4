"""What hamr refuses: which exception, what it says, and that nothing has changed."""

import numpy as np
import pytest

import hamr
from tests.support import producers

HUGE = 2**50

# Each operation fails on a buffer of three int8. The words are what the message must name.
FAILURES = [
    # name, operation, exception, words
    ("append str", lambda b: b.append("abc"), TypeError, "str"),
    ("append None", lambda b: b.append(None), TypeError, "NoneType"),
    ("append object", lambda b: b.append(object()), TypeError, "object"),
    ("append list of str", lambda b: b.append(["a"]), TypeError, "list"),
    ("append list with None", lambda b: b.append([1, None]), TypeError, "list"),
    ("append ragged list", lambda b: b.append([[1, 2], [3]]), ValueError, "inhomogeneous"),
    ("append too large", lambda b: b.append(300), hamr.OutOfRange, "300 .*int8.*127"),
    ("append too small", lambda b: b.append(-129), hamr.OutOfRange, "-129 .*int8.*-128"),
    ("append complex", lambda b: b.append(1j), TypeError, "1j .*int8"),
    ("append nan", lambda b: b.append(float("nan")), hamr.OutOfRange, "nan .*int8"),
    ("append beyond 64 bits", lambda b: b.append(2**64), hamr.OutOfRange, str(2**64)),
    ("assign too large", lambda b: b.assign(300), hamr.OutOfRange, "300 .*int8"),
    ("assign str", lambda b: b.assign("abc"), TypeError, "str"),
    ("set str", lambda b: b.set("abc"), TypeError, "str"),
    ("set too large", lambda b: b.set(300), hamr.OutOfRange, "300 .*int8"),
    ("set at beyond", lambda b: b.set([1, 2], at=5), IndexError, "at.*5.*3"),
    ("set at negative", lambda b: b.set([1, 2], at=-1), IndexError, "at.*-1"),
    ("set too many", lambda b: b.set([1, 2], at=2), IndexError, "n.*2.*1"),
    ("set start beyond", lambda b: b.set([1, 2], start=3), IndexError, "start.*3.*2"),
    ("set start negative", lambda b: b.set([1, 2], start=-1), IndexError, "start.*-1"),
    ("set n beyond", lambda b: b.set([1, 2], n=3), IndexError, "n.*3.*2"),
    ("set n negative", lambda b: b.set([1, 2], n=-1), ValueError, "n.*-1"),
    ("set at str", lambda b: b.set([1], at="a"), TypeError, "at.*'a'"),
    ("set n beyond 64 bits", lambda b: b.set([1], n=2**64), ValueError, f"n.*{2**64}"),
    ("fill None", lambda b: b.fill(None), TypeError, "value.*None"),
    ("fill str", lambda b: b.fill("a"), TypeError, "str"),
    ("fill many", lambda b: b.fill([1, 2]), ValueError, "value.*2.*single"),
    ("fill too large", lambda b: b.fill(300), hamr.OutOfRange, "300 .*int8"),
    ("fill infinity", lambda b: b.fill(float("inf")), hamr.OutOfRange, "inf .*int8"),
    ("resize negative", lambda b: b.resize(-1), ValueError, "-1"),
    ("resize fraction", lambda b: b.resize(1.5), TypeError, r"n.*1\.5"),
    ("resize str", lambda b: b.resize("a"), TypeError, "n.*'a'"),
    ("resize array", lambda b: b.resize(np.array([1, 2])), TypeError, r"n.*\[1, 2\]"),
    ("resize class", lambda b: b.resize(int), TypeError, "n.*int"),
    ("resize shape of str", lambda b: b.resize((2, "a")), TypeError, "n.*'a'"),
    ("resize shape negative", lambda b: b.resize((2, -3)), ValueError, "-3"),
    ("resize 65 dimensions", lambda b: b.resize((1,) * 65), ValueError, "65.*64"),
    ("resize overflow", lambda b: b.resize((2**40, 2**40)), ValueError, str(2**40)),
    ("resize beyond 62 bits", lambda b: b.resize(2**62), ValueError, str(2**62)),
    ("resize beyond 64 bits", lambda b: b.resize(2**64), ValueError, f"n.*{2**64}"),
    ("resize beyond memory", lambda b: b.resize(HUGE), hamr.OutOfMemory, str(HUGE)),
    ("resize value too large", lambda b: b.resize(9, 300), hamr.OutOfRange, "300 .*int8"),
    ("resize value str", lambda b: b.resize(9, "a"), TypeError, "str"),
    ("resize value many", lambda b: b.resize(9, [1, 2]), ValueError, "value.*2"),
    ("reserve negative", lambda b: b.reserve(-1), ValueError, "n.*-1"),
    ("reserve str", lambda b: b.reserve("a"), TypeError, "n.*'a'"),
    ("reserve beyond 62 bits", lambda b: b.reserve(2**62), ValueError, f"n.*{2**62}"),
    ("reserve beyond memory", lambda b: b.reserve(HUGE), hamr.OutOfMemory, str(HUGE)),
    ("reserve value too large", lambda b: b.reserve(9, 300), hamr.OutOfRange, "300 .*int8"),
    ("index beyond", lambda b: b[3], IndexError, "3.*-3.*2"),
    ("index before", lambda b: b[-4], IndexError, "-4.*-3"),
    ("index too many", lambda b: b[0, 0], IndexError, "2.*1"),
    ("index two dots", lambda b: b[..., ...], IndexError, r"\.\.\."),
    ("index str", lambda b: b["a"], TypeError, "index.*'a'"),
    ("index fraction", lambda b: b[0.5], TypeError, r"index.*0\.5"),
    ("index bool", lambda b: b[True], TypeError, "index.*True"),
    ("index list", lambda b: b[[0, 1]], TypeError, r"index.*\[0, 1\]"),
    ("slice by zero", lambda b: b[::0], ValueError, "zero"),
    ("slice by str", lambda b: b["a":], TypeError, "slice"),
    ("write beyond", lambda b: b.__setitem__(3, 1), IndexError, "3"),
    ("write too large", lambda b: b.__setitem__(0, 300), hamr.OutOfRange, "300 .*int8"),
    ("write complex", lambda b: b.__setitem__(0, 1j), TypeError, "1j .*int8"),
    ("write another shape", lambda b: b.__setitem__(slice(2), [1, 2, 3]), ValueError, "2.*3"),
    ("write more dimensions", lambda b: b.__setitem__(0, [[1], [2]]), ValueError, "2, 1"),
    ("get into list", lambda b: b.get([1, 2, 3]), TypeError, "list"),
    ("get into bytes", lambda b: b.get(b"abc"), ValueError, "read-only"),
    ("get into too small", lambda b: b.get(np.zeros(2)), ValueError, "out.*2.*3"),
    ("get into too large", lambda b: b.get(np.zeros(4)), ValueError, "out.*4.*3"),
    ("get into objects", lambda b: b.get(np.zeros(3, "O")), TypeError, "objects"),
    ("get beyond", lambda b: b.get(np.zeros(3), start=1, n=3), IndexError, "n.*3"),
    ("get part without out", lambda b: b.get(start=1), TypeError, "out"),
    ("copy to no type", lambda b: b.copy(dtype="nope"), TypeError, "dtype.*nope.*float32"),
    ("copy to no place", lambda b: b.copy("nowhere"), ValueError, "allocator.*nowhere.*malloc"),
    ("copy to no device", lambda b: b.copy(device="x"), ValueError, "device.*'x'"),
    ("copy to a device of bool", lambda b: b.copy(device=True), TypeError, "device.*True"),
    ("copy to a far device", lambda b: b.copy(device=2**32), ValueError, f"device.*{2**32}"),
    ("astype None", lambda b: b.astype(None), TypeError, "dtype.*None"),
    ("astype str", lambda b: b.astype("U3"), TypeError, "dtype.*U3"),
    ("astype big-endian", lambda b: b.astype(">f4"), TypeError, "dtype.*>f4.*big-endian"),
    ("astype ambiguous", lambda b: b.astype("char"), TypeError, "dtype.*char.*size"),
    ("astype unhashable", lambda b: b.astype([1]), TypeError, r"dtype.*\[1\]"),
    ("move to no name", lambda b: b.move("nowhere"), ValueError, "allocator.*nowhere.*malloc"),
    ("move to no value", lambda b: b.move(99), ValueError, "allocator.*99"),
    ("move to None", lambda b: b.move(None), TypeError, "allocator.*None"),
    ("move to none", lambda b: b.move(hamr.Allocator.none), ValueError, "allocator.*none"),
    ("swap with array", lambda b: b.swap(np.zeros(3)), TypeError, "other"),
    ("swap with handle", lambda b: b.swap(b.pointer()), TypeError, "other"),
    ("stream str", lambda b: b.set_stream("x"), TypeError, "stream.*'x'"),
    ("stream bool", lambda b: b.set_stream(True), TypeError, "stream.*True"),
    ("stream buffer", lambda b: b.set_stream(b), TypeError, "stream"),
    ("stream negative", lambda b: b.set_stream(-1), ValueError, "stream.*-1"),
    ("stream beyond 64 bits", lambda b: b.set_stream(2**64), ValueError, f"stream.*{2**64}"),
    ("transfer name", lambda b: b.set_transfer("x"), ValueError, "transfer.*'x'.*sync_host"),
    ("transfer value", lambda b: b.set_transfer(7), ValueError, "transfer.*7"),
    ("transfer None", lambda b: b.set_transfer(None), TypeError, "transfer.*None"),
    ("stream and transfer", lambda b: b.set_stream(5, "x"), ValueError, "transfer.*'x'"),
    ("space", lambda b: b.accessible("mars"), ValueError, "space.*mars.*host"),
    ("int of many", int, ValueError, "3"),
    ("truth of many", bool, ValueError, "3"),
]


def state(buffer):
    """All there is to know about a buffer."""
    return (
        buffer.shape, buffer.strides, buffer.typestr, buffer.ptr, buffer.capacity(),
        buffer.allocator, buffer.owner, buffer.readonly, buffer.stream, buffer.transfer,
        buffer.source_protocol, np.asarray(buffer).tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["owned", "shared"])
@pytest.mark.parametrize(
    ("operation", "error", "words"),
    [pytest.param(*failure[1:], id=failure[0]) for failure in FAILURES],
)
def test_failure_names_what_is_wrong_and_changes_nothing(kind, operation, error, words):
    content = np.array([1, 2, 3], "int8")
    buffer = (
        hamr.buffer(content)
        if kind == "shared"
        else producers.in_memory(content, hamr.Allocator.cpp)
    )
    before = state(buffer)
    with pytest.raises(error, match=words) as caught:
        operation(buffer)
    assert caught.type is error
    assert state(buffer) == before


WRITES = {
    "fill": lambda b: b.fill(1),
    "set": lambda b: b.set([1]),
    "assign": lambda b: b.assign([1, 2, 3]),
    "setitem": lambda b: b.__setitem__(0, 1),
    "setitem of a view": lambda b: b[1:].__setitem__(..., [1, 2]),
    "get into": lambda b: hamr.Buffer(3, "int8", fill=1).get(b),
}


@pytest.mark.parametrize("operation", WRITES.values(), ids=WRITES)
def test_read_only_memory_is_not_written(operation):
    content = bytes([1, 2, 3])
    buffer = hamr.buffer(content)
    with pytest.raises(ValueError, match="read-only"):
        operation(buffer)
    assert content == bytes([1, 2, 3])
    assert buffer.readonly


CONSTRUCTIONS = [
    (lambda: hamr.Buffer("3"), TypeError, "shape.*'3'"),
    (lambda: hamr.Buffer(3.0), TypeError, r"shape.*3\.0"),
    (lambda: hamr.Buffer(None), TypeError, "shape.*None"),
    (lambda: hamr.Buffer((2, 2.5)), TypeError, r"shape.*2\.5"),
    (lambda: hamr.Buffer(-1), ValueError, "shape.*-1"),
    (lambda: hamr.Buffer((2, -3)), ValueError, "shape.*-3"),
    (lambda: hamr.Buffer((2**40, 2**40)), ValueError, f"shape.*{2**40}"),
    (lambda: hamr.Buffer((1,) * 65), ValueError, "shape.*65.*64"),
    (lambda: hamr.Buffer(2**100), ValueError, f"shape.*{2**100}"),
    (lambda: hamr.Buffer((1, 2**100)), ValueError, f"shape.*{2**100}"),
    (lambda: hamr.Buffer(3, "nope"), TypeError, "dtype.*nope.*float32"),
    (lambda: hamr.Buffer(3, None), TypeError, "dtype.*None"),
    (lambda: hamr.Buffer(3, "f4", "nowhere"), ValueError, "allocator.*nowhere.*malloc"),
    (lambda: hamr.Buffer(3, "f4", 99), ValueError, "allocator.*99"),
    (lambda: hamr.Buffer(3, "f4", True), TypeError, "allocator.*True"),
    (lambda: hamr.Buffer(3, "f4", hamr.Allocator.none), ValueError, "allocator.*none"),
    (lambda: hamr.Buffer(3, "f4", hamr.Allocator.same), ValueError, "allocator.*same"),
    (lambda: hamr.Buffer(3, device="0"), ValueError, "device.*'0'"),
    (lambda: hamr.Buffer(3, device=True), TypeError, "device.*True"),
    (lambda: hamr.Buffer(3, device=2**32), ValueError, f"device.*{2**32}"),
    (lambda: hamr.Buffer(3, device=-2), ValueError, "device.*-2"),
    (lambda: hamr.Buffer(3, stream="x"), TypeError, "stream.*'x'"),
    (lambda: hamr.Buffer(3, stream=-1), ValueError, "stream.*-1"),
    (lambda: hamr.Buffer(3, transfer="x"), ValueError, "transfer.*'x'"),
    (lambda: hamr.Buffer(3, "i1", fill=128), hamr.OutOfRange, "128 .*int8"),
    (lambda: hamr.Buffer(3, "u8", fill=-1), hamr.OutOfRange, "-1 .*uint64"),
    (lambda: hamr.Buffer(3, "f4", fill=1j), TypeError, "1j .*float32"),
    (lambda: hamr.Buffer(3, "f4", fill="x"), TypeError, "str"),
    (lambda: hamr.Buffer(3, "f4", fill=[1, 2]), ValueError, "value.*2.*single"),
    (lambda: hamr.Buffer(3, "i8", fill=2**64), hamr.OutOfRange, str(2**64)),
    (lambda: hamr.Buffer(3, "f4", data=[1, 2]), ValueError, r"shape.*3.*2"),
    (lambda: hamr.Buffer(3, "f4", fill=1, data=[1]), TypeError, "fill.*data"),
    (lambda: hamr.Buffer.from_pointer("x", 3), TypeError, "pointer.*'x'"),
    (lambda: hamr.Buffer.from_pointer(-1, 3), ValueError, "pointer.*-1"),
    (lambda: hamr.Buffer.from_pointer(2**64, 3), ValueError, f"pointer.*{2**64}"),
    (lambda: hamr.Buffer.from_pointer(0, 3), ValueError, "NULL"),
    (lambda: hamr.Buffer.from_pointer(2**64 - 8, 3), ValueError, "address space"),
    (lambda: hamr.Buffer.from_pointer(64, 3, strides=(8, 8)), ValueError, r"strides.*\(8, 8\)"),
    (lambda: hamr.Buffer.from_pointer(64, 3, strides=[8]), TypeError, r"strides.*\[8\]"),
    (lambda: hamr.Buffer.from_pointer(64, 3, strides=(-64,)), ValueError, "address space"),
    (lambda: hamr.Buffer.from_pointer(64, 3, take=True, readonly=True), ValueError, "take"),
    (lambda: hamr.Handle(), TypeError, "Handle"),
    (lambda: object.__new__(hamr.Buffer), TypeError, "Buffer"),
    (lambda: hamr.Stream("x"), TypeError, "stream.*'x'"),
    (lambda: hamr.Stream(2**64), ValueError, f"stream.*{2**64}"),
    (lambda: hamr.make_buffer(1, 3, "x"), TypeError, "value.*'x'"),
    (lambda: hamr.buffer_float(), TypeError, "buffer_float"),
    (lambda: hamr.buffer_float(1, 2, 3, 4), TypeError, "buffer_float"),
]


@pytest.mark.parametrize(("make", "error", "words"), CONSTRUCTIONS)
def test_constructors_name_what_is_wrong(make, error, words):
    with pytest.raises(error, match=words) as caught:
        make()
    assert caught.type is error


@pytest.mark.parametrize("make", [lambda n: hamr.Buffer(n, "u1"), lambda n: hamr.Buffer((n // 8,))])
def test_out_of_memory_tells_the_size(make, allocator):
    with pytest.raises(MemoryError, match=str(HUGE)) as caught:
        make(HUGE)
    assert caught.type is hamr.OutOfMemory
    assert isinstance(caught.value, hamr.Error)
    assert caught.value.size == HUGE


def test_every_exception_has_the_root_and_a_builtin_base():
    bases = {
        hamr.BackendUnavailable: RuntimeError,
        hamr.OutOfMemory: MemoryError,
        hamr.DeviceError: RuntimeError,
        hamr.FreedBuffer: ValueError,
        hamr.ForkError: RuntimeError,
        hamr.InternalError: RuntimeError,
        hamr.InUse: BufferError,
        hamr.OutOfRange: (ValueError, OverflowError),
    }
    for error, base in bases.items():
        assert issubclass(error, hamr.Error)
        for each in base if isinstance(base, tuple) else (base,):
            assert issubclass(error, each)
    assert hamr.Error.__base__ is Exception


AVAILABLE = {a for row in hamr.backends().values() if row["available"] for a in row["allocators"]}
ABSENT = [a.name for a in hamr.Allocator if a >= 0 and a.name not in AVAILABLE]


@pytest.mark.parametrize("name", ABSENT)
def test_absent_runtime_is_named(name):
    backend = "openmp" if name == "openmp" else name.split("_")[0]
    buffer = hamr.Buffer(3, "int8", fill=1)
    before = state(buffer)
    for use in (
        lambda: hamr.Buffer(3, "int8", name),
        lambda: hamr.buffer_float(hamr.Allocator[name], 3, 1.0),
        lambda: buffer.move(name),
        lambda: buffer.copy(name),
        getattr(buffer, f"get_{backend}_accessible"),
    ):
        with pytest.raises(hamr.BackendUnavailable, match=backend) as caught:
            use()
        assert isinstance(caught.value, RuntimeError)
        assert caught.value.backend == backend
        assert isinstance(caught.value.tried, tuple)
    assert state(buffer) == before


@pytest.mark.parametrize("name", ["sycl", "syclops", "sycl_svm"])
def test_names_of_no_allocator(name):
    buffer = hamr.Buffer(3, "int8", fill=1)
    for use in (
        lambda: hamr.Buffer(3, "int8", name),
        lambda: hamr.make_buffer(name, 3),
        lambda: hamr.Buffer.from_pointer(buffer.ptr, 3, "int8", name, owner=buffer),
        lambda: buffer.move(name),
        lambda: buffer.copy(name),
    ):
        with pytest.raises(ValueError, match=f"allocator is '{name}': accepted are cpp"):
            use()
    assert str(buffer) == "{1, 1, 1}"


def test_out_that_is_read_only_is_named():
    with pytest.raises(ValueError, match="out is read-only: accepted is a writable array"):
        hamr.Buffer(3, "int8", fill=1).get(bytes(3))


def test_arguments_are_called_as_the_caller_does():
    with pytest.raises(ValueError, match=r"^sync is 'never': accepted are async"):
        hamr.buffer(b"1", sync="never")
    with pytest.raises(TypeError, match=r"^sync is None: accepted is"):
        hamr.buffer(b"1", sync=None)
    with pytest.raises(ValueError, match=r"^transfer is 'never': accepted are async"):
        hamr.Buffer(1, transfer="never")


class Lines:
    def __repr__(self):
        return "Lines:\n  1,\n  2"


def test_values_of_many_lines_are_shown_in_one():
    with pytest.raises(TypeError, match=r"^x is Lines: 1, 2: accepted is a buffer"):
        hamr.device_of(Lines())
