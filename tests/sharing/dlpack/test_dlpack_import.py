"""Tensors of DLPack into hamr: what is taken from them, and what is refused in them."""

import gc
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

import hamr
from tests.support import producers
from tests.support.dlpack_producers import Producer, Tensor, name_of
from tests.support.dlpack_structs import CPU, CUDA_HOST, ONE_API, OPENCL, READ_ONLY, ROCM, ROCM_HOST
from tests.support.producers import assert_same

adopt = import_module("hamr._protocols.dispatch")
SAMPLE = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture(params=[True, False], ids=["versioned", "unversioned"])
def versioned(request):
    return request.param


@pytest.fixture(autouse=True)
def unknown_types():
    """Whatever other tests have shared."""
    adopt.dlpack_types.discard(Producer)


SHARES = [
    lambda t: hamr.from_dlpack(Producer(t)),
    lambda t: hamr.buffer(Producer(t)),
    lambda t: hamr.from_dlpack(t.capsule()),
    lambda t: hamr.buffer(t.capsule()),
]


@pytest.fixture(params=SHARES, ids=["from_dlpack", "buffer", "capsule", "buffer of capsule"])
def share(request):
    return request.param


# What is taken.


@given(producers.arrays())
def test_arrays_are_shared(array):
    tensor = Tensor(array)
    shared = hamr.from_dlpack(Producer(tensor))
    assert shared.source_protocol == "__dlpack__"
    assert_same(shared, array)
    assert shared.readonly == (not array.flags.writeable)
    if array.size:
        assert shared.ptr == array.ctypes.data
        long = [i for i, n in enumerate(array.shape) if n > 1]
        assert [shared.strides[i] for i in long] == [array.strides[i] for i in long]
    del shared
    assert (tensor.ended, tensor.unused) == (1, 0)


def test_every_way(share, versioned):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned)
    shared = share(tensor)
    assert shared.source_protocol == "__dlpack__"
    assert (shared.ptr, shared.device) == (tensor.array.ctypes.data, -1)
    assert shared.allocator is hamr.Allocator.malloc
    assert not shared.readonly
    shared[0, 1] = 9
    assert tensor.array[0, 1] == 9
    assert tensor.ended == 0
    del shared
    assert (tensor.ended, tensor.unused) == (1, 0)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [((4, 16, 1), "bfloat16"), ((10, 8, 1), "float8_e4m3fn"), ((12, 8, 1), "float8_e5m2"),
     ((6, 8, 1), "bool"), ((5, 64, 1), "complex64"), ((5, 128, 1), "complex128"),
     ((2, 16, 1), "float16")],
)  # fmt: skip
def test_element_types_by_their_codes(share, versioned, dtype, name):
    content = np.arange(32, dtype="u1") % 2
    shared = share(Tensor(content, versioned=versioned, dtype=dtype, shape=(2,)))
    assert str(shared.dtype) == name
    assert shared.itemsize == dtype[1] // 8
    assert shared.nbytes == dtype[1] // 4


def test_strides_may_be_null(share, versioned):
    content = np.arange(24.0).reshape(2, 3, 4)
    shared = share(Tensor(content, versioned=versioned, strides=None))
    assert shared.strides == (96, 32, 8)
    assert_same(shared, content)


def test_no_dimensions(share, versioned):
    for shape in None, ():
        shared = share(Tensor(np.array(7, "i8"), versioned=versioned, shape=shape, strides=None))
        assert (shared.shape, shared.item()) == ((), 7)


def test_empty_arrays_have_no_address(share, versioned):
    for shape in (0,), (3, 0), (0, 2**40):
        for offset in 0, 16:
            shared = share(Tensor(np.empty(shape, "f4"), versioned=versioned, byte_offset=offset))
            assert (shared.shape, shared.nbytes) == (shape, 0)
            assert np.asarray(shared).shape == shape


@pytest.mark.parametrize("stride", [0, -5, 2**40, 2**62, -(2**63)])
def test_strides_of_length_one_mean_nothing(share, versioned, stride):
    content = np.arange(3, dtype="f8").reshape(1, 3)
    shared = share(Tensor(content, versioned=versioned, strides=(stride, 1)))
    assert_same(shared, content)
    assert shared.is_contiguous


def test_the_byte_offset_is_added(share, versioned):
    content = np.arange(6, dtype="i4")
    shared = share(Tensor(content, versioned=versioned, byte_offset=8, shape=(4,)))
    assert shared.ptr == content.ctypes.data + 8
    assert_same(shared, content[2:])
    backwards = share(
        Tensor(content, versioned=versioned, byte_offset=20, strides=(-2,), shape=(3,))
    )
    assert_same(backwards, content[::-2])


def test_strides_of_every_kind(share, versioned):
    content = np.arange(6, dtype="i2")
    for shape, strides in ((3, 2), (1, 3)), ((4, 6), (0, 1)), ((2, 2, 2), (3, 1, 1)):
        shared = share(Tensor(content, versioned=versioned, ndim=len(shape), shape=shape,
                              strides=strides))  # fmt: skip
        expected = np.lib.stride_tricks.as_strided(content, shape, [2 * s for s in strides])
        assert_same(shared, expected)
        assert shared.strides == tuple(2 * s for s in strides)


def test_negative_strides_that_lost_their_sign(share, versioned):
    """CuPy 14 divides them, in bytes, as unsigned numbers."""
    content = np.arange(6, dtype="i2")
    lost = (2**64 - 4) // 2
    backwards = share(
        Tensor(content, versioned=versioned, byte_offset=10, strides=(lost,), shape=(3,))
    )
    assert backwards.strides == (-4,)
    assert_same(backwards, content[::-2])


def test_sixty_four_dimensions(share):
    shared = share(Tensor(np.ones(1), ndim=64, shape=(1,) * 64, strides=(0,) * 64))
    assert shared.ndim == 64
    assert shared.size() == 1


def test_the_read_only_flag(share):
    shared = share(Tensor(SAMPLE.copy(), flags=READ_ONLY))
    assert shared.readonly
    assert not np.asarray(shared).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        shared.fill(1)
    assert not shared.copy().readonly
    assert not share(Tensor(SAMPLE.copy(), flags=2**64 - 2)).readonly


@pytest.mark.parametrize("minor", [0, 1, 2, 3, 99])
def test_minor_versions(share, minor):
    assert_same(share(Tensor(SAMPLE.copy(), version=(1, minor))), SAMPLE)


@pytest.mark.parametrize("kind", [CUDA_HOST, ROCM_HOST])
def test_page_locked_memory_that_no_driver_knows_is_host_memory(share, versioned, kind):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned, device=(kind, 0))
    shared = share(tensor)
    assert (shared.allocator, shared.device) == (hamr.Allocator.malloc, -1)
    assert_same(shared, SAMPLE)
    del shared
    assert tensor.ended == 1


# Who ends a tensor, and when.


def test_the_tensor_lives_exactly_as_long_as_it_is_used(share, versioned):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned)
    shared = share(tensor)
    users = [
        shared[1:], shared.get_host_accessible(), hamr.buffer(shared), np.asarray(shared),
        memoryview(shared), shared[0].get_host_accessible(), np.asarray(shared[:, ::2])[0],
    ]  # fmt: skip
    shared.close()
    del shared
    while users:
        gc.collect()
        assert tensor.ended == 0
        users.pop()
    gc.collect()
    assert (tensor.ended, tensor.unused) == (1, 0)


def test_growth_lets_the_tensor_go(share, versioned):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned)
    shared = share(tensor)
    shared.append(1)
    assert tensor.ended == 1
    assert shared.source_protocol is None
    assert shared.get().tolist() == [0, 1, 2, 3, 4, 5, 1]


def test_a_deleter_may_be_null(share, versioned):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned, deleter=None)
    assert_same(share(tensor), SAMPLE)
    assert tensor.ended == 0
    with pytest.raises(BufferError, match="OpenCL"):
        share(Tensor(SAMPLE.copy(), versioned=versioned, deleter=None, device=(OPENCL, 0)))


def test_tensors_that_are_handed_over_again_and_again(share, versioned):
    tensors = [Tensor(np.full(100, i), versioned=versioned) for i in range(200)]
    shared = [share(tensor) for tensor in tensors]
    assert [x[7].item() for x in shared] == list(range(200))
    assert {tensor.ended for tensor in tensors} == {0}
    del shared
    assert {tensor.ended for tensor in tensors} == {1}


def test_the_end_of_one_tensor_may_be_that_of_another():
    """Nested deleters: a tensor over memory that keeps the buffer of another tensor."""
    first, count = Tensor(SAMPLE.copy()), 1000
    tensors, holder = [first], hamr.from_dlpack(first.capsule())
    for _ in range(count):
        tensor = Tensor(np.asarray(holder))
        tensors.append(tensor)
        holder = hamr.from_dlpack(tensor.capsule())
    assert first.ended == 0
    assert_same(holder, SAMPLE)
    del holder
    for tensor in tensors:
        tensor.array = None  # what its memory was
    del tensor
    gc.collect()
    assert {t.ended for t in tensors} == {1}


# What is refused.

REFUSED = [
    ({"dtype": (0, 64, 2)}, TypeError, r"code 0, bits 64, lanes 2.*lanes must be 1"),
    ({"dtype": (0, 64, 0)}, TypeError, r"lanes 0"),
    ({"dtype": (0, 4, 1)}, TypeError, r"code 0, bits 4, lanes 1.*whole bytes"),
    ({"dtype": (17, 4, 1)}, TypeError, r"code 17, bits 4.*whole bytes"),
    ({"dtype": (3, 64, 1)}, TypeError, r"code 3, .*opaque handles"),
    ({"dtype": (2, 128, 1)}, TypeError, r"code 2, bits 128"),
    ({"dtype": (5, 32, 1)}, TypeError, r"code 5, bits 32"),
    ({"dtype": (6, 1, 1)}, TypeError, r"code 6, bits 1"),
    ({"dtype": (255, 255, 65535)}, TypeError, r"code 255, bits 255, lanes 65535"),
    ({"ndim": -1}, ValueError, r"ndim is -1: .*0 \.\.\. 64"),
    ({"ndim": 65, "shape": (1,) * 65, "strides": None}, ValueError, "ndim is 65: .*64"),
    ({"ndim": 2**31 - 1}, ValueError, "ndim is 2147483647"),
    ({"shape": None}, ValueError, "shape is NULL.*2 dimensions"),
    ({"shape": (2, -3)}, ValueError, r"shape.*-3.*negative"),
    ({"shape": (-(2**63), 1)}, ValueError, "shape.*negative"),
    ({"shape": (2**62, 4)}, ValueError, "shape.*address space"),
    ({"shape": (2**32, 2**31)}, ValueError, "shape.*address space"),
    ({"shape": (2**62, 4), "strides": None}, ValueError, "shape.*address space"),
    ({"shape": (0, 2**62), "strides": None}, ValueError, "shape.*address space"),
    ({"strides": (2**62, 1)}, ValueError, f"strides has {2**62} .*dimension 0"),
    ({"strides": (1, -(2**62))}, ValueError, f"strides has -{2**62} .*dimension 1"),
    ({"strides": (2**61 - 1, 2**60)}, ValueError, "strides.*address space"),
    ({"strides": (2**60, 2**60)}, ValueError, "strides.*address space|data.*address space"),
    ({"data": None}, ValueError, "data is NULL for 24 bytes"),
    ({"data": None, "byte_offset": 4096}, ValueError, "data is NULL for 24 bytes"),
    ({"byte_offset": 2**64 - 8}, ValueError, f"byte_offset is {2**64 - 8}: .*address space"),
    ({"byte_offset": 2**63, "data": 2**63}, ValueError, f"byte_offset is {2**63}"),
    ({"data": 2**64 - 8}, ValueError, "data.*address space"),
    ({"data": 8, "strides": (-64, 1)}, ValueError, "data.*address space"),
    ({"device": (OPENCL, 0)}, BufferError, r"device is \(4, 0\), which is OpenCL: .*CPU \(1\)"),
    ({"device": (7, 1)}, BufferError, r"device is \(7, 1\), which is Vulkan"),
    ({"device": (8, 0)}, BufferError, r"\(8, 0\), which is Metal"),
    ({"device": (ONE_API, 3)}, BufferError, r"\(14, 3\), which is oneAPI: .*CUDAManaged \(13\)"),
    ({"device": (0, 0)}, BufferError, r"\(0, 0\), which is no device that is known"),
    ({"device": (-7, 0)}, BufferError, r"\(-7, 0\)"),
    ({"device": (99, 0)}, BufferError, r"\(99, 0\)"),
    ({"device": (ROCM, -1)}, ValueError, r"\(10, -1\): .*0 or more"),
    ({"device": (ROCM, 0)}, hamr.BackendUnavailable, "hip"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "words"), REFUSED, ids=[str(changes)[:50] for changes, *_ in REFUSED]
)
def test_what_is_refused(share, versioned, changes, error, words):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned, **changes)
    before = hamr.stats()["references"]
    with pytest.raises(error, match=words) as caught:
        share(tensor)
    assert caught.type is error
    del caught
    # Before it is asked, if it says where it is. Else its capsule has ended it.
    assert tensor.ended == tensor.unused
    assert tensor.ended in ((0, 1) if "device" in changes else (1,))
    assert hamr.stats()["references"] == before


@pytest.mark.parametrize(
    ("changes", "error"), [(changes, error) for changes, error, _ in REFUSED], ids=str
)
def test_a_capsule_that_is_refused_is_not_consumed(versioned, changes, error):
    tensor = Tensor(SAMPLE.copy(), versioned=versioned, **changes)
    capsule = tensor.capsule()
    for use in hamr.from_dlpack, hamr.buffer:
        with pytest.raises(error):
            use(capsule)
        assert name_of(capsule) == ("dltensor_versioned" if versioned else "dltensor")
    assert tensor.ended == 0
    del capsule
    assert (tensor.ended, tensor.unused) == (1, 1)


def test_what_was_refused_may_be_mended():
    tensor = Tensor(SAMPLE.copy(), device=(OPENCL, 0))
    capsule = tensor.capsule()
    with pytest.raises(BufferError):
        hamr.from_dlpack(capsule)
    tensor.set("device", (CPU, 0))
    shared = hamr.from_dlpack(capsule)
    assert name_of(capsule) == "used_dltensor_versioned"
    del capsule
    assert_same(shared, SAMPLE)
    assert tensor.ended == 0
    del shared
    assert (tensor.ended, tensor.unused) == (1, 0)


@pytest.mark.parametrize("version", [(0, 8), (2, 0), (2**32 - 1, 7)])
def test_of_another_major_version_only_the_deleter_is_known(share, version):
    tensor = Tensor(SAMPLE.copy(), version=version, ndim=-5, data=None, shape=None)
    with pytest.raises(BufferError, match=rf"DLPack {version[0]}\.{version[1]}: .*version 1"):
        share(tensor)
    assert (tensor.ended, tensor.unused) == (1, 0)
    capsule = Tensor(SAMPLE.copy(), version=version, deleter=None).capsule()
    with pytest.raises(BufferError, match="DLPack"):
        hamr.from_dlpack(capsule)
    assert name_of(capsule) == "used_dltensor_versioned"


def test_content_operations_take_what_has_dlpack():
    made = hamr.Buffer((2, 3), "f8", fill=1)
    tensors = [Tensor(SAMPLE.copy()) for _ in range(4)]
    made[...] = Producer(tensors[0])
    assert made.get().tolist() == SAMPLE.tolist()
    made.append(Producer(tensors[1]))
    assert made.get().tolist() == [*SAMPLE.ravel().tolist()] * 2
    made.assign(tensors[2].capsule())
    assert_same(made, SAMPLE.astype("f8"))
    made.set(Producer(tensors[3]), n=2)
    assert [t.ended for t in tensors] == [1, 1, 1, 1]


def test_out_of_an_operation():
    """Written to in place."""
    tensor = Tensor(np.zeros(3, "f4"))
    hamr.buffer(np.arange(3.0)).get(Producer(tensor))
    assert tensor.array.tolist() == [0, 1, 2]
    assert tensor.ended == 1


@pytest.mark.parametrize("arguments", [{}, {"device": -1}, {"copy": True}])
def test_masked_arrays_are_refused(arguments):
    masked = np.ma.array([1, 2], mask=[True, False])
    with pytest.raises(TypeError, match="mask would be lost"):
        hamr.from_dlpack(masked, **arguments)
