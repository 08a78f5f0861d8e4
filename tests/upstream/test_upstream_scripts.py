"""Scripts written for upstream HAMR's Python module run unchanged."""

import numpy as np
import pytest

import hamr
from hamr._base.library import core
from tests.support import producers
from tests.support.upstream_programs import WIND_SPEED, WIND_SPEED_OUTPUT

# Where there is no CuPy, a module of its name lets the script get as far as hamr.
NO_CUPY = "import sys, types; sys.modules['cupy'] = types.ModuleType('cupy')\n"
ON_THE_HOST = (
    ("import cupy as cp", "import numpy as cp"),
    ("get_cuda_accessible", "get_host_accessible"),
    ("buffer_allocator_cuda", "buffer_allocator_cpp"),
)
CUDA = hamr.backends().get("cuda", {"available": False})["available"]


def test_a_program_for_the_host():
    script = WIND_SPEED
    for old, new in ON_THE_HOST:
        assert old in script
        script = script.replace(old, new)
    output = producers.run_python(script).stdout
    assert output.count("13.") == 300
    assert output == WIND_SPEED_OUTPUT


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
def test_a_program_for_cuda_says_what_is_missing():
    script = NO_CUPY + WIND_SPEED
    done = producers.run_python(script, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("hamr.BackendUnavailable: ")
    assert "cuda" in last
    lines = script.splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.startswith("east =")]
    assert f"line {number}, in <module>" in done.stderr


def test_star_import_brings_every_name():
    code = "from hamr import *; print(*sorted(n for n in dir() if not n.startswith('_')))"
    names = producers.run_python(code).stdout.split()
    assert set(names) == set(hamr.__all__)
    assert len(hamr.__all__) == len(set(hamr.__all__))


CONSTANTS = {
    "buffer_allocator_same": -2,
    "buffer_allocator_none": -1,
    "buffer_allocator_cpp": 0,
    "buffer_allocator_malloc": 1,
    "buffer_allocator_cuda": 2,
    "buffer_allocator_cuda_async": 3,
    "buffer_allocator_cuda_uva": 4,
    "buffer_allocator_cuda_host": 5,
    "buffer_allocator_hip": 6,
    "buffer_allocator_hip_uva": 7,
    "buffer_allocator_openmp": 8,
    "buffer_transfer_async": 0,
    "buffer_transfer_sync_host": 1,
    "buffer_transfer_sync": 2,
}


@pytest.mark.parametrize(("name", "value"), CONSTANTS.items())
def test_constants_have_upstreams_values(name, value):
    assert getattr(hamr, name) == value
    assert isinstance(getattr(hamr, name), int)


TYPES = {
    "float": "float32", "double": "float64", "char": "int8", "signed_char": "int8",
    "short": "int16", "int": "int32", "long": "int64", "long_long": "int64",
    "unsigned_char": "uint8", "unsigned_short": "uint16", "unsigned_int": "uint32",
    "unsigned_long": "uint64", "unsigned_long_long": "uint64",
}  # fmt: skip
each_type = pytest.mark.parametrize(("name", "dtype"), TYPES.items())


def test_there_are_thirteen_types():
    assert len(TYPES) == 13
    named = {n.removeprefix("buffer_") for n in hamr.__all__ if n.startswith("buffer_")}
    rest = {n for n in named if n.startswith(("allocator_", "transfer_", "handle_"))} | {"handle"}
    assert named - rest == set(TYPES)


@pytest.mark.parametrize("name", [name for name in TYPES if name != "signed_char"])
def test_handles_have_upstreams_types(name):
    kind = getattr(hamr, f"buffer_handle_{name}")
    for other, dtype in TYPES.items():
        buffer = getattr(hamr, f"buffer_{other}")(hamr.buffer_allocator_malloc, 3, 1)
        assert isinstance(buffer.get_host_accessible(), kind) is (dtype == TYPES[name])
        assert not isinstance(buffer, kind)
    assert issubclass(kind, hamr.Handle)
    with pytest.raises(TypeError, match=r"get_host_accessible"):
        kind()


@each_type
def test_arguments_of_each_type(name, dtype, allocator):
    """(allocator[, stream[, transfer]][, n[, value or array]])"""
    make = getattr(hamr, f"buffer_{name}")
    stream, mode = hamr.stream(), hamr.buffer_transfer_sync
    for place in ((), (stream,), (None,), (stream, mode)):
        expected_mode = mode if mode in place else hamr.Transfer.sync_host
        for content, expected in (
            ((), []),
            ((3,), None),
            ((np.int64(3),), None),
            ((3, 7), [7, 7, 7]),
            ((3, 7.0), [7, 7, 7]),
            ((3, np.float32(7)), [7, 7, 7]),
            ((3, np.array(7)), [7, 7, 7]),
            ((3, np.arange(5)), [0, 1, 2]),
            ((3, [1, 2, 3]), [1, 2, 3]),
            ((3, hamr.Buffer(4, fill=2)), [2, 2, 2]),
        ):
            made = make(allocator, *place, *content)
            assert made.dtype == dtype
            assert made.get_allocator() == allocator
            assert made.get_transfer_mode() == expected_mode
            assert made.size() == (content[0] if content else 0)
            assert expected is None or made.get().tolist() == expected


@each_type
def test_other_buffers_and_arrays_are_copied_and_converted(name, dtype, allocator):
    """([allocator[, stream[, transfer]],] other)"""
    make = getattr(hamr, f"buffer_{name}")
    source = hamr.Buffer((2, 2), "float64", allocator, data=[[0, 1], [2, 3.75]])
    for other in (source, source.get_host_accessible(), source.get()):
        made = make(other)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made.get(), source.get().astype(dtype), strict=True)
        moved = make(hamr.Allocator.cpp, hamr.stream(), hamr.buffer_transfer_async, other)
        assert moved.allocator == hamr.Allocator.cpp
        assert moved.transfer == hamr.Transfer.async_
        assert moved.get().tolist() == made.get().tolist()
    assert make(source).allocator == allocator


@each_type
def test_wrong_arguments(name, dtype):
    make = getattr(hamr, f"buffer_{name}")
    for wrong in ((), (1, 2, 3, 4), ("malloc", 3, 1.0), (1, 3, 1, 1)):
        with pytest.raises(TypeError, match=f"buffer_{name}"):
            make(*wrong)
    with pytest.raises(ValueError, match="allocator"):
        make(99, 3)
    with pytest.raises(IndexError):
        make(1, 3, [1, 2])
    with pytest.raises(TypeError):
        make(1, 3, "abc")
    assert make.__name__ == f"buffer_{name}"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, "int64"), (1.5, "float64"), (True, "bool"), (1j, "complex128"), (np.int8(3), "int8")],
)
def test_make_buffer_takes_the_values_type(value, dtype, allocator):
    made = hamr.make_buffer(allocator, 3, value)
    assert made.dtype == dtype
    assert made.allocator == allocator
    assert made.get().tolist() == [value] * 3
    assert hamr.make_buffer(allocator, 2).get().tolist() == [0.0, 0.0]


def test_methods_upstream_misspelt_and_their_right_names():
    buffer = hamr.Buffer(3)
    for method, mode in (
        ("set_transfer_asynchronous", 0),
        ("set_transfer_sycnhronous", 2),
        ("set_transfer_sycnhronous_host", 1),
        ("set_transfer_synchronous", 2),
        ("set_transfer_synchronous_host", 1),
    ):
        getattr(buffer, method)()
        assert buffer.get_transfer_mode() == buffer.transfer == mode


def test_upstreams_questions(allocator):
    buffer = hamr.Buffer(5, "f4", allocator)
    assert buffer.size() == len(buffer) == 5
    assert buffer.capacity() == 5
    assert buffer.data() == buffer.ptr == hamr.data(buffer)
    assert buffer.pointer().ptr == buffer.ptr
    assert buffer.get_allocator() is allocator
    assert buffer.get_owner() == buffer.owner == -1
    assert buffer.get_stream() == buffer.stream == hamr.stream()
    assert buffer.host_accessible()
    assert buffer.cpu_accessible()
    assert not buffer.cuda_accessible()
    assert not buffer.hip_accessible()
    assert not buffer.openmp_accessible()
    buffer.synchronize()
    assert isinstance(buffer.get_cpu_accessible(), hamr.buffer_handle)


def test_set_stream_resets_the_mode():
    buffer = hamr.Buffer(3, transfer="sync")
    buffer.set_stream(hamr.stream())
    assert buffer.transfer == hamr.buffer_transfer_async
    buffer.set_stream(7, hamr.buffer_transfer_sync_host)
    assert int(buffer.stream) == 7
    assert buffer.transfer == hamr.buffer_transfer_sync_host


def test_default_modes():
    assert hamr.buffer(np.zeros(3)).transfer == hamr.buffer_transfer_sync_host
    assert hamr.buffer(np.zeros(3), sync="async").transfer == hamr.buffer_transfer_async
    assert hamr.buffer(np.zeros(3), transfer="async").transfer == hamr.buffer_transfer_async
    assert hamr.buffer(np.zeros(3), None, "sync").transfer == hamr.buffer_transfer_sync
    with pytest.raises(TypeError, match="transfer and sync are both given"):
        hamr.buffer(np.zeros(3), transfer="async", sync="sync")
    assert hamr.buffer(np.zeros(3), hamr.stream(5), 2).transfer == hamr.buffer_transfer_sync
    assert int(hamr.buffer(np.zeros(3), stream=5).stream) == 5


class ForeignStream:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class ProtocolStream:
    def __cuda_stream__(self):
        return (0, 9)


@pytest.mark.parametrize(
    "foreign",
    [9, hamr.Stream(9), ForeignStream(ptr=9), ForeignStream(cuda_stream=9), ProtocolStream(),
     ForeignStream(handle=ForeignStream(value=9)), ForeignStream(handle=9)],
)  # fmt: skip
def test_streams_of_other_libraries(foreign):
    assert int(hamr.stream(foreign)) == 9
    assert hamr.Stream.from_any(foreign) == hamr.Stream(9)
    assert int(hamr.Buffer(3, stream=foreign).stream) == 9
    assert hash(hamr.Stream(foreign)) == hash(hamr.Stream(9))
    assert repr(hamr.Stream(foreign)) == "hamr.Stream(0x9)"
    assert hamr.Stream(foreign).ptr == 9


def test_utilities_take_one_or_many():
    a, b = hamr.Buffer(2, "f4", "cpp", fill=1), hamr.Buffer(3, fill=2)
    assert isinstance(hamr.get_host_accessible(a), hamr.Handle)
    first, second = hamr.get_host_accessible(a, b)
    assert (first.ptr, second.ptr) == (a.ptr, b.ptr) == hamr.data(a, b)
    assert [h.ptr for h in hamr.pointer(a, b)] == [a.ptr, b.ptr]
    assert hamr.synchronize(a, b) is None
    for allocator in hamr.Allocator:
        assert hamr.get_allocator_name(allocator) == allocator.name
        assert hamr.get_allocator_name(int(allocator)) == allocator.name


def cuda_devices():
    try:
        return core().DeviceCount("cuda")
    except hamr.BackendUnavailable:
        return 0


@pytest.mark.skipif(cuda_devices() > 0, reason="there is a device here")
def test_preferred_places_without_a_device():
    assert hamr.get_host_allocator() is hamr.Allocator.malloc
    assert hamr.get_device_allocator() is hamr.Allocator.malloc
    handle = hamr.get_device_accessible(hamr.Buffer(2, fill=3))
    assert np.asarray(handle).tolist() == [3, 3]
