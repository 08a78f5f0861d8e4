"""What upstream HAMR got wrong, one test each: the docstring says what upstream did.

Only what shows without a device; the defects of streams and devices are tested with the emulator.
"""

import gc

import numpy as np
import pytest

import hamr
from tests.support import producers

# Upstream's Python module.


def test_strides_are_kept():
    """Upstream read {0, 1, 2, 3, 4} here: it ignored strides."""
    assert str(hamr.buffer(np.arange(10)[::2])) == "{0, 2, 4, 6, 8}"
    assert str(hamr.buffer(np.arange(5)[::-1])) == "{4, 3, 2, 1, 0}"


def test_transposed_matrix():
    """Upstream read m.T in the order of m."""
    m = np.arange(6).reshape(2, 3)
    buffer = hamr.buffer(m.T)
    assert str(buffer) == "{{0, 3},\n {1, 4},\n {2, 5}}"
    np.testing.assert_array_equal(np.asarray(buffer), m.T)


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3, 1), (), (0, 4)])
def test_shapes_are_kept(shape):
    """Upstream made every array one of one dimension."""
    array = np.zeros(shape)
    assert np.asarray(hamr.buffer(array)).shape == shape
    assert np.asarray(hamr.buffer(array).get_host_accessible()).shape == shape


@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_read_only_arrays_stay_read_only(share):
    """Upstream exported a read-only array's memory as writable."""
    array = np.arange(3.0)
    array.setflags(write=False)
    shared = share(hamr.buffer(array))
    assert shared.readonly
    assert not np.asarray(shared).flags.writeable
    assert shared.__array_interface__["data"][1] is True


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_types_of_one_byte(dtype):
    """Upstream rejected the typestrs that begin with '|', so these types never came in."""
    array = np.array([1, 0, 1], dtype)
    assert array.dtype.str[0] == "|"
    for producer in (array, producers.interface_of(array)):
        producers.assert_same(hamr.buffer(producer), array)


@pytest.mark.parametrize("share", [lambda b: b, hamr.Buffer.get_host_accessible])
def test_asking_host_memory_for_the_cuda_interface(share):
    """Upstream raised SystemError, so that hasattr() did, and every consumer that asks."""
    assert hasattr(share(hamr.Buffer(3)), "__cuda_array_interface__") is False
    assert getattr(share(hamr.Buffer(3)), "__cuda_array_interface__", None) is None


CUDA = hamr.backends().get("cuda", {"available": False})["available"]


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
def test_no_cuda_handles_without_cuda():
    """Upstream, built without CUDA, handed out "CUDA" handles with pointer 0."""
    with pytest.raises(hamr.BackendUnavailable, match="cuda"):
        hamr.Buffer(3).get_cuda_accessible()
    with pytest.raises(hamr.BackendUnavailable, match="cuda"):
        hamr.Buffer(3, "f4", hamr.Allocator.cuda)


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
def test_cuda_memory_without_cuda_is_not_taken():
    """Upstream, built without CUDA, wrapped the object and crashed when it was printed."""

    class OnDevice:
        __cuda_array_interface__ = {
            "shape": (3,), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3,
        }  # fmt: skip

    with pytest.raises((TypeError, hamr.BackendUnavailable)):
        str(hamr.buffer(OnDevice()))


@pytest.mark.parametrize(
    "make", [lambda: hamr.Buffer(0), lambda: hamr.Buffer((0, 3), "i1"), lambda: freed()]
)
def test_empty_handles_reach_numpy(make):
    """Upstream's handle of an empty buffer raised TypeError in NumPy."""
    buffer = make()
    for shared in (buffer, buffer.get_host_accessible()):
        array = np.asarray(shared)
        assert array.shape == buffer.shape
        assert array.dtype == buffer.dtype


def freed():
    buffer = hamr.Buffer(3)
    buffer.free()
    return buffer


def test_content_operations_are_there():
    """Upstream's Python had no set, get, append or assign."""
    buffer = hamr.buffer_int(hamr.buffer_allocator_malloc, 2, 7)
    buffer.append([8, 9])
    buffer.set([1, 2], at=1)
    out = np.zeros(4, "i4")
    buffer.get(out)
    assert out.tolist() == [7, 1, 2, 9]
    buffer.assign([5])
    assert str(buffer) == "{5}"


def test_utilities_are_there():
    """Upstream's Python had none of its own C++ utilities."""
    a, b = hamr.make_buffer(hamr.buffer_allocator_cpp, 2, 3), hamr.Buffer(2, fill=1)
    assert [h.size() for h in hamr.get_host_accessible(a, b)] == [2, 2]
    assert hamr.data(a, b) == (a.ptr, b.ptr)
    assert hamr.pointer(a).ptr == a.ptr
    hamr.synchronize(a, b)
    assert hamr.get_allocator_name(hamr.get_host_allocator()) in ("malloc", "cuda_host")


# Upstream's core.


@pytest.mark.parametrize("allocator", producers.ALLOCATORS, ids=str)
def test_resize_inside_the_capacity_fills(allocator):
    """Upstream's resize(n, v) filled only where it allocated."""
    buffer = hamr.Buffer(0, "int32", allocator)
    buffer.reserve(16, 7)
    address = buffer.ptr
    buffer.resize(4, 1)
    buffer.resize(8, 2)
    buffer.resize(2)
    buffer.resize(6, 3)
    assert buffer.ptr == address
    assert str(buffer) == "{1, 1, 3, 3, 3, 3}"


def test_free_keeps_the_place(allocator):
    """Upstream's free() set the owner to -1, and resize() after it broke."""
    buffer = hamr.Buffer(4, "float32", allocator, fill=1)
    owner = buffer.get_owner()
    buffer.free()
    assert (buffer.get_allocator(), buffer.get_owner()) == (allocator, owner)
    buffer.resize(3, 2)
    assert str(buffer) == "{2, 2, 2}"


@pytest.mark.parametrize(
    "use",
    [
        lambda b: b.set([1, 2], at=3),
        lambda b: b.set([1], start=2),
        lambda b: b.set([1], at=5),
        lambda b: b.get(np.zeros(9), start=3, n=2),
        lambda b: b.get(np.zeros(1), n=2),
        lambda b: b.get(np.zeros(4), at=1, n=4),
        lambda b: b[4],
    ],
)
def test_bounds_are_always_checked(use):
    """Upstream checked bounds by assertions that release builds leave out."""
    buffer = hamr.Buffer(4, "int8", fill=0)
    with pytest.raises(IndexError):
        use(buffer)
    assert str(buffer) == "{0, 0, 0, 0}"


def test_failures_are_exceptions(capfd):
    """Upstream's content operations printed a message and returned -1."""
    buffer = hamr.Buffer(2, fill=0)
    with pytest.raises(hamr.OutOfMemory):
        buffer.resize(2**50)
    assert capfd.readouterr() == ("", "")
    assert buffer.resize(3) is None


def test_assignment_keeps_the_targets_place(allocator):
    """In C++, assigning keeps allocator, owner, stream and mode: so does assign()."""
    target = hamr.Buffer(1, "f4", allocator, transfer="sync")
    target.assign(hamr.Buffer(5, "f8", hamr.Allocator.malloc, fill=2, transfer="async"))
    assert target.allocator == allocator
    assert target.transfer == hamr.Transfer.sync
    assert np.dtype(target.dtype) == "f4"
    assert str(target) == "{2, 2, 2, 2, 2}"


def test_a_copy_converts_any_type_to_any():
    """As upstream's copy constructor, but for all types, and from anything."""
    source = np.array([0, 1, 2.75])
    for name in ("int", "float", "unsigned_char", "long_long"):
        made = getattr(hamr, f"buffer_{name}")(source)
        assert made.get().tolist() == source.astype(made.dtype).tolist()
        assert not np.shares_memory(np.asarray(made), source)


# Sharing in circles.


def test_handle_of_a_handle():
    """Upstream's handles had no access methods of their own."""
    buffer = hamr.Buffer(3, "i4", fill=1)
    handle = buffer.get_host_accessible()
    again = handle.get_host_accessible()
    assert (again.ptr, again.is_temporary) == (handle.ptr, False)
    np.asarray(again)[0] = 5
    assert str(buffer) == "{5, 1, 1}"


@pytest.mark.parametrize(
    "share",
    [
        lambda b: hamr.buffer(b),
        lambda b: hamr.buffer(b.get_host_accessible()),
        lambda b: hamr.buffer(hamr.buffer(hamr.buffer(b).get_host_accessible())),
        lambda b: hamr.buffer(np.asarray(b)),
        lambda b: hamr.buffer(memoryview(b)),
    ],
)
def test_buffer_of_a_buffer(share):
    """Upstream lost shape and read-only flag on each way through a handle."""
    buffer = hamr.Buffer((2, 3), "i4", fill=1)
    shared = share(buffer)
    assert (shared.ptr, shared.shape, shared.typestr) == (buffer.ptr, (2, 3), "<i4")
    shared[0, 0] = 5
    buffer[1, 2] = 6
    assert str(shared) == str(buffer) == "{{5, 1, 1},\n {1, 1, 6}}"
    expected = buffer.get()
    del buffer
    gc.collect()
    np.testing.assert_array_equal(np.asarray(shared), expected)
