"""Kernels that users bring: modules, launches, and what a kernel may be given."""

import ctypes
import gc
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import pygpu
from tests.cuda import driver

PTX = Path(__file__).with_name("user_kernels.ptx")
N = 1000
GRID = {"grid": 8, "block": 128}


class Line(ctypes.Structure):
    _fields_ = (("slope", ctypes.c_double), ("offset", ctypes.c_int32), ("count", ctypes.c_uint32))


@pytest.fixture
def module():
    return pygpu.Module(PTX)


def of_a_binary(module, name):
    """A kernel of whose parameters nobody but the driver says anything."""
    return pygpu.Function(module._code, name)


def ramp(allocator="cuda", **options):
    return hamr.buffer(np.arange(N, dtype="f4")).copy(allocator, **options)


def zeros(count=N, dtype="f4", **options):
    return hamr.Buffer(count, dtype, "cuda", fill=0, **options)


@pytest.mark.parametrize("code", [PTX, str(PTX), PTX.read_text(), PTX.read_bytes()], ids=type)
def test_a_module_is_a_path_or_what_it_holds(code):
    x, y = ramp(), zeros()
    pygpu.Module(code).function("saxpy")(np.uint32(N), np.float32(3), x, y, **GRID)
    assert (np.asarray(y.get_host_accessible()) == 3 * np.arange(N)).all()


@pytest.mark.parametrize(
    "n", [N, np.uint32(N), np.int32(N), np.array(N, "i4")[()], ctypes.c_uint32(N)], ids=repr
)
@pytest.mark.parametrize("a", [3.0, np.float32(3), ctypes.c_float(3)], ids=repr)
def test_values(module, n, a):
    y = zeros()
    module.function("saxpy")(n, a, ramp(), y, **GRID)
    assert (np.asarray(y.get_host_accessible()) == 3 * np.arange(N)).all()


def test_arrays_of_each_kind(module):
    saxpy, expected = module.function("saxpy"), 2 * np.arange(N, dtype="f4")
    held = pygpu.DeviceArray_float32(np.arange(N, dtype="f4"))
    held.allocate()
    held.to_device()
    foreign = driver.Array(np.arange(N, dtype="f4"))
    address = ctypes.c_uint64(foreign.ptr)
    arrays = [ramp(kind) for kind in ("cuda", "cuda_async", "cuda_uva", "cuda_vmm")]
    arrays += [ramp().get_cuda_accessible(), ramp()[:], pygpu.to_gpu(np.arange(N, dtype="f4"))]
    arrays += [held, held.device_data(), foreign, driver.Only(foreign, version=2), address]
    arrays += [address.value, np.uint64(foreign.ptr), hamr.buffer(foreign), pygpu.In(foreign)]
    for x in arrays:
        y = zeros()
        saxpy(N, 2.0, x, y, **GRID)
        assert (np.asarray(y.get_host_accessible()) == expected).all(), x


def test_records_by_value(module):
    put = module.function("put_line")
    record = np.array((0.5, -3, N), [("slope", "f8"), ("offset", "i4"), ("count", "u4")])[()]
    assert type(record) is np.void
    for line in record, Line(0.5, -3, N):
        y = zeros(dtype="f8")
        put(line, y, **GRID)
        assert (np.asarray(y.get_host_accessible()) == 0.5 * np.arange(N) - 3).all()


@pytest.mark.parametrize(
    ("grid", "block"),
    [((2, 3, 4), (5, 6, 7)), ([2, 3, 4], np.array([5, 6, 7])), ((np.int64(10), 18, 28), 1)],
)
def test_three_dimensions(module, grid, block):
    if isinstance(block, np.ndarray):
        block = tuple(block)
    to = zeros(28 * 18 * 10, "u4")
    module.function("places")(to, np.uint8(2), grid=grid, block=block)
    z, y, x = np.indices((28, 18, 10))
    expected = 2 * (10000 * z + 100 * y + x)
    assert (np.asarray(to.get_host_accessible()).reshape(28, 18, 10) == expected).all()


def test_no_arguments_and_no_elements(module):
    assert module.function("nothing")(grid=1, block=1) is None
    y = hamr.Buffer(0, "f4", "cuda")
    module.function("fill")(y, 0, 1.0, grid=1, block=1)
    assert module.function("fill") is module.function("fill")
    assert "saxpy" in repr(module.function("saxpy"))
    assert "user_kernels.ptx" in repr(module)


def test_what_is_known_of_a_kernel(module):
    known = module.function("put_line").attributes()
    assert known["parameters"] in ((16, 8), None)
    assert known["types"] == ("b8[16]", "u64")
    assert known["threads"] >= 128
    assert known["most_shared"] >= 48 << 10
    assert known["registers"] > 0
    assert len(known["most_block"]) == len(known["most_grid"]) == 3


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((1, 2.0, 3), TypeError, "the number of arguments of saxpy is 3: accepted is 4"),
        ((1, 2.0, "x", "y", 5), TypeError, "the number of arguments of saxpy is 5"),
        ((1, np.float64(2), "x", "y"), TypeError,
         "argument 1 of saxpy is of 8 bytes: accepted is one of 4 bytes"),
        (("x", 2.0, "x", "y"), TypeError, "argument 0 of saxpy is of 8 bytes: accepted is one"),
        ((2**32, 2.0, "x", "y"), OverflowError, "argument 0 of saxpy is an int beyond"),
        ((2**64 - 5, 2.0, "x", "y"), OverflowError, "argument 0 of saxpy is an int beyond"),
        ((-(2**31) - 1, 2.0, "x", "y"), OverflowError, "argument 0 of saxpy is an int beyond"),
        ((1, 1e300, "x", "y"), OverflowError, "argument 1 of saxpy is a float beyond"),
        ((1, 2.0, 2**64, "y"), OverflowError, "argument 2 of saxpy is an int beyond"),
        ((1, True, "x", "y"), TypeError, "argument 1 of saxpy is of 1 bytes"),
        ((1, 2j, "x", "y"), TypeError, "argument 1 of saxpy is 2j: accepted are arrays"),
        ((1, "2", "x", "y"), TypeError, "argument 1 of saxpy is '2': accepted are arrays"),
        ((1, None, "x", "y"), TypeError, "argument 1 of saxpy is None"),
        ((1, 2.0, np.zeros(3), "y"), TypeError, "2 of saxpy is a numpy.ndarray, which is in host"),
        ((1, 2.0, b"abc", "y"), TypeError, "argument 2 of saxpy is a bytes, which is in"),
        ((1, 2.0, "host", "y"), ValueError, "argument 2 of saxpy is a buffer of malloc in host"),
        ((1, 2.0, "pinned", "y"), ValueError, "2 of saxpy is a buffer of cuda_host in host"),
    ],
)  # fmt: skip
def test_wrong_arguments(module, arguments, error, words):
    buffers = {"x": ramp(), "y": zeros(), "host": ramp("malloc"), "pinned": ramp("cuda_host")}
    if arguments[1] == "2":
        arguments = (1, "2", buffers["x"], buffers["y"])
    else:
        arguments = tuple(buffers.get(a, a) if isinstance(a, str) else a for a in arguments)
    with pytest.raises(error) as raised:
        module.function("saxpy")(*arguments, **GRID)
    assert words in str(raised.value)
    assert not np.asarray(buffers["y"].get_host_accessible()).any()


def test_plain_numbers_need_a_size(module, emulator):
    places = of_a_binary(module, "places")
    with pytest.raises(TypeError, match=r"plain int, and the parameter has 1 bytes.*numpy.int8"):
        places(zeros(), 2, grid=1, block=1)
    emulator.fail("cuFuncGetParamInfo", 1, 801)
    fill = of_a_binary(pygpu.Module(PTX), "fill")
    assert fill.attributes()["parameters"] is fill.attributes()["types"] is None
    emulator.stop_failing()
    y = zeros()
    with pytest.raises(TypeError, match=r"does not say of which size the parameter.*numpy.int32"):
        fill(y, N, 1.0, **GRID)
    fill(y, np.uint64(N), np.float32(1), **GRID)
    assert (np.asarray(y.get_host_accessible()) == 1).all()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, TypeError, "nothing takes grid= and block="),
        ({"grid": 1}, TypeError, "nothing takes grid= and block="),
        ({"grid": 1, "block": 1, "threads": 3}, TypeError, "nothing takes grid= and block="),
        ({"grid": 0, "block": 1}, ValueError, "grid is 0"),
        ({"grid": 1, "block": (1, 0)}, ValueError, r"block is \(1, 0\)"),
        ({"grid": -1, "block": 1}, ValueError, "grid is -1"),
        ({"grid": (1, 2, 3, 4), "block": 1}, ValueError, r"grid is \(1, 2, 3, 4\)"),
        ({"grid": (), "block": 1}, ValueError, r"grid is \(\)"),
        ({"grid": 1.5, "block": 1}, TypeError, "grid is 1.5"),
        ({"grid": "1", "block": 1}, TypeError, "grid is '1'"),
        ({"grid": (1, 70000), "block": 1}, ValueError, r"grid is \(1, 70000, 1\): accepted is 1"),
        ({"grid": 1, "block": (1, 1, 65)}, ValueError, r"block is \(1, 1, 65\): accepted is 1 … "),
        ({"grid": 1, "block": (64, 64)}, ValueError, r"block is \(64, 64, 1\), which is 4096"),
        ({"grid": 1, "block": 1, "shared": 1 << 20}, ValueError, "shared is 1048576: accepted is"),
        ({"grid": 1, "block": 1, "shared": -1}, ValueError, "shared is -1"),
        ({"grid": 1, "block": 1, "stream": "x"}, TypeError, "stream is 'x'"),
        ({"grid": 1, "block": 1, "stream": 4711}, ValueError, "stream that exists"),
    ],
)  # fmt: skip
def test_wrong_threads_and_streams(module, options, error, words):
    with pytest.raises(error, match=words):
        module.function("nothing")(**options)


def test_more_shared_memory_than_every_kernel_has(module, emulator):
    nothing, most = module.function("nothing"), 99 << 10
    assert nothing.attributes()["most_shared"] == most
    for shared, told in (48 << 10, 0), ((48 << 10) + 1, 1), (most, 2), (most, 2), (1000, 2):
        nothing(grid=1, block=1, shared=shared)
        assert emulator.calls("cuFuncSetAttribute") == told


def test_what_is_no_kernel(module):
    with pytest.raises(ValueError, match='name is "none": accepted is a kernel of the module'):
        module.function("none")(grid=1, block=1)
    with pytest.raises(ValueError, match="accepted is a kernel of the module's"):
        module.function("none").attributes()
    for name, error in ("", ValueError), ("a\0b", ValueError), (3, TypeError):
        with pytest.raises(error, match="name is "):
            module.function(name)
    for code, error in (b"", ValueError), (3, TypeError), ("/no/such/file.ptx", FileNotFoundError):
        with pytest.raises(error):
            pygpu.Module(code)


def test_the_compilers_words_are_in_the_error():
    text = PTX.read_text().replace("mul.lo.u32", "nosuchinstruction", 1)
    function = pygpu.Module(text).function("saxpy")
    for _ in range(2):
        with pytest.raises(hamr.DeviceError, match="nosuchinstruction") as raised:
            function(1, 1.0, 0, 0, grid=1, block=1)
        assert raised.value.name == "CUDA_ERROR_INVALID_PTX"
    with pytest.raises(hamr.DeviceError):
        pygpu.Module(b"\0\1\2 no code").function("saxpy").attributes()


def test_read_only_buffers_are_read(module, emulator):
    foreign = driver.Array(np.arange(N, dtype="f4"))
    reads = [hamr.buffer(driver.Only(foreign, data=(foreign.ptr, True)))]
    reads.append(driver.Only(foreign, data=(foreign.ptr, True)))
    y = zeros()
    for x in reads:
        with pytest.raises(ValueError, match=r"argument 2 of saxpy is .*read-only.*In\("):
            module.function("saxpy")(N, 1.0, x, y, **GRID)
        module.function("saxpy")(N, 1.0, pygpu.In(x), y, **GRID)
    assert (np.asarray(y.get_host_accessible()) == 2 * np.arange(N)).all()


def test_elements_in_use_are_not_touched(module):
    b = zeros()
    fill = module.function("fill")
    with b.on_cuda("rw") as h:
        with pytest.raises(hamr.InUse, match="before a kernel uses them"):
            fill(b, N, 1.0, **GRID)
        fill(h, N, 2.0, **GRID)
    with b.on_cuda("r") as h:
        with pytest.raises(hamr.InUse):
            fill(b, N, 1.0, **GRID)
        module.function("saxpy")(N, 1.0, pygpu.In(b), zeros(), **GRID)
    assert (np.asarray(b.get_host_accessible()) == 2).all()
    b.close()
    with pytest.raises(hamr.FreedBuffer):
        fill(b, N, 1.0, **GRID)


def test_what_is_kept_of_a_buffer_is_dropped(module):
    b = zeros().cached()
    assert not np.asarray(b.get_host_accessible()).any()
    module.function("saxpy")(N, 1.0, pygpu.In(b), zeros(), **GRID)
    for value in 3.0, 4.0:
        module.function("fill")(b, N, value, **GRID)
        assert (np.asarray(b.get_host_accessible()) == value).all()


# Elements that are brought to the device.


def test_elements_of_the_host_are_brought_and_taken_back(module):
    saxpy, fill = module.function("saxpy"), module.function("fill")
    x, y, out = np.arange(N, dtype="f4"), np.ones(N, "f4"), np.zeros(N, "f4")
    x.flags.writeable = False
    fill(pygpu.Out(out), N, 7.0, **GRID)
    assert (out == 7).all()
    saxpy(N, 2.0, pygpu.In(x), pygpu.InOut(y), stream=hamr.Stream(device=0), **GRID)
    assert (y == 2 * np.arange(N) + 1).all()
    for kind in "malloc", "cuda_host":
        host = ramp(kind)
        saxpy(N, 1.0, pygpu.In(x), pygpu.InOut(host), **GRID)
        assert (np.asarray(host) == 2 * np.arange(N)).all()
    with pytest.raises(ValueError, match="read-only"):
        fill(pygpu.Out(x), N, 7.0, **GRID)
    with pytest.raises(ValueError, match="lie on each other"):
        fill(pygpu.InOut(np.lib.stride_tricks.as_strided(y, (N - 2, 3), (4, 4))), N, 7.0, **GRID)
    with pytest.raises(TypeError, match="argument 0 of fill is 3 in In, Out or InOut"):
        fill(pygpu.Out(3), N, 7.0, **GRID)
    with pytest.raises(TypeError, match="accepted is an array"):
        pygpu.In(pygpu.Out(x))
    y[:] = 1
    with pytest.raises(ValueError, match="block is"):
        fill(pygpu.InOut(y), N, 7.0, grid=1, block=(64, 64))
    assert (y == 1).all()
    y += 1  # it is nobody's any more


@pytest.mark.multigpu
def test_other_devices(module):
    saxpy, expected = module.function("saxpy"), 2 * np.arange(N)
    x, y, there = ramp(), ramp(), ramp(device=1)
    for arguments in (x, there), (there, x):
        with pytest.raises(ValueError, match=r"a buffer of cuda on device \d: accepted is memory"):
            saxpy(N, 1.0, *arguments, **GRID)
    with pytest.raises(ValueError, match="on device 1: accepted is memory of device 0"):
        saxpy(N, 1.0, x, driver.Array(np.zeros(N, "f4"), device=1), **GRID)
    with pytest.raises(ValueError, match="device 1"):
        saxpy(N, 1.0, x, y, stream=hamr.Stream(device=1), **GRID)
    saxpy(N, 1.0, there, there, **GRID)  # where its first array is
    assert (np.asarray(there.get_host_accessible()) == expected).all()
    saxpy(N, 0.5, pygpu.In(there), y, **GRID)
    assert (np.asarray(y.get_host_accessible()) == expected).all()
    saxpy(N, 1.0, x, pygpu.InOut(there), **GRID)
    assert (np.asarray(there.get_host_accessible()) == 1.5 * expected).all()
    module.function("nothing")(grid=1, block=1, stream=hamr.Stream(device=1))


def test_it_cannot_be_pickled(module):
    import pickle

    for each in module, module.function("saxpy"):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(each)


@pytest.mark.freed_again  # it asks what is pending, which other memory's release waits for
def test_modules_end_with_their_functions(emulator):
    gc.collect()
    before = emulator.live("modules")
    function = pygpu.Module(PTX).function("nothing")
    function(grid=1, block=1)
    emulator.finish()
    assert emulator.live("modules") == before + 1
    function(grid=1, block=1)
    assert emulator.pending() > 0
    del function
    gc.collect()
    assert emulator.live("modules") == before + 1, "its kernel has yet to run"
    assert emulator.pending() > 0
    emulator.finish()
    hamr.trim()
    assert emulator.live("modules") == before
