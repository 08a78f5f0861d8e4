"""Everyday words on device memory: devices by name, comparison, views, handles, new buffers."""

import types

import numpy as np
import pytest

import hamr
from tests.cuda import driver

A = hamr.Allocator
LAST = driver.DEVICES - 1


def on(device, allocator="cuda"):
    return hamr.Buffer((2, 3), "f4", allocator, device=device, data=[[1, 2, 3], [4, 5, 6]])


def assert_ramp(buffer):
    assert buffer.get().tolist() == [[1, 2, 3], [4, 5, 6]]


TORCHS = types.SimpleNamespace(type="cuda", index=LAST)
JAXS = types.SimpleNamespace(platform="gpu", id=99, local_hardware_id=LAST)
CUPYS = types.SimpleNamespace(id=LAST)


@pytest.mark.parametrize(
    "device", [LAST, f"cuda:{LAST}", f"gpu:{LAST}", TORCHS, JAXS, CUPYS], ids=str
)
def test_a_device_alone_chooses_its_memory(device):
    host = hamr.Buffer((2, 3), "f4", data=[[1, 2, 3], [4, 5, 6]])
    moved = host.copy()
    moved.move("same", device=device)
    for made in (
        hamr.Buffer((2, 3), "f4", device=device, data=[[1, 2, 3], [4, 5, 6]]),
        host.copy(device=device),
        host.get_host_accessible().copy(device=device),
        host.copy("cuda_host").copy(device=device),
        hamr.array(host, device=device),
        hamr.asarray([[1, 2, 3], [4, 5, 6]], "f4", device=device),
        hamr.from_dlpack(host, device=device),
        moved,
    ):
        assert (made.allocator, made.device) == (A.cuda, LAST)
        assert_ramp(made)
    assert hamr.Stream(device=device).device == LAST
    for reached in (
        host.get_cuda_accessible(device),
        host.get_device_accessible(device),
        host.get_host_accessible().get_cuda_accessible(device=device),
        hamr.Buffer((2, 3), "f4", "cuda", device=0, data=host).get_cuda_accessible(device),
    ):
        assert reached.device == LAST
        assert_ramp(reached)
    assert hamr.device(device).index == LAST


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
@pytest.mark.parametrize("device", [-1, "cpu"])
def test_a_copy_to_the_host_is_on_the_host(allocator, device):
    source = on(LAST, allocator)
    copied = source.copy(device=device)
    assert (copied.allocator, copied.device) == (A.malloc, -1)
    assert_ramp(copied)
    source.move("same", device=device)
    assert (source.allocator, source.device) == (A.malloc, -1)
    assert_ramp(source)
    assert_ramp(hamr.asarray(on(0, allocator), device="cpu"))


def test_no_name_of_a_device_stays_as_it_was():
    assert on(LAST, "cuda_async").copy().allocator == A.cuda_async
    assert on(LAST, "cuda_async").copy(device=0).allocator == A.cuda_async
    with hamr.device(LAST):
        assert hamr.zeros(3, device="cuda").device == LAST
        assert hamr.asarray(on(LAST), device="cuda").device == LAST
        assert hamr.asarray(on(0), device="cuda").device == LAST
    pinned = hamr.Buffer(3, "f4", "cuda_host", device=-1)
    assert pinned.copy(device=-1).allocator == A.cuda_host


def test_asarray_shares_device_memory():
    source = on(LAST)
    for shared in (
        hamr.asarray(source),
        hamr.asarray(source, device=LAST),
        hamr.asarray(source, "f4"),
    ):
        assert shared.ptr == source.ptr
    assert hamr.asarray(source, device=0).device == 0
    like = hamr.zeros_like(source)
    assert (like.allocator, like.device) == (A.cuda, LAST)
    assert like.get().tolist() == [[0] * 3] * 2


def test_elements_compare_and_all_say_what_to_write():
    b = on(0)
    assert b[0, 1] == 2
    assert b[0, 1] < 2.5
    assert f"{b[1, 2]:.1f}" == "6.0"
    assert 5 in b
    assert 7 not in b
    assert b[0, 1] == np.float32(2)
    assert np.int64(5) in b
    typed = [lambda k=k: b == k(1) for k in (np.float64, np.float32)]
    typed += [lambda k=k: b + k(1) for k in (np.float64, np.float32)]
    for refused in (lambda: b == 1, lambda: b == [1], lambda: b + 1, lambda: -b, *typed):
        with pytest.raises(
            TypeError, match=r"numpy\.asarray\(b\.get_host_accessible\(\)\).*cupy\.asarray"
        ):
            refused()
    with pytest.raises(TypeError, match=r"a = cupy\.asarray\(b\); a \+= x"):
        b += 1
    with pytest.raises(AttributeError, match=r"get_host_accessible\(\)\)\.tolist"):
        _ = b.tolist


def test_rows_of_device_memory_print_in_their_shape():
    assert str(on(LAST)) == "{{1, 2, 3},\n {4, 5, 6}}"
    large = hamr.array(np.arange(2000).reshape(2, 1000), device=0)
    assert (
        str(large) == "{{0, 1, 2, ..., 997, 998, 999},\n {1000, 1001, 1002, ..., 1997, 1998, 1999}}"
    )


def test_views_of_device_memory():
    b = on(LAST)
    assert b.T.get().tolist() == [[1, 4], [2, 5], [3, 6]]
    assert b.view("u4")[0, 0].item() == 0x3F800000
    assert b[None].squeeze().ravel().ptr == b.ptr
    raw = hamr.Buffer(16, "u1", "cuda", fill=0)
    assert raw[4:12].view("f4").get().tolist() == [0, 0]
    with pytest.raises(ValueError, match="multiples of 4 bytes"):
        raw[1:9].view("f4")


def test_parts_of_a_handle_are_where_it_is():
    b = on(LAST)
    place = b.get_cuda_accessible(LAST)
    assert not place[1].is_temporary
    assert place[1].ptr == b.ptr + 12
    assert driver.content(place.T).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert [row.get().tolist() for row in place] == [[1, 2, 3], [4, 5, 6]]
    brought = b.get_host_accessible()
    assert brought[1].is_temporary
    assert np.asarray(brought.T).tolist() == [[1, 4], [2, 5], [3, 6]]
    managed = on(LAST, "cuda_uva").get_cuda_accessible(LAST)
    assert managed[0].__dlpack_device__() == managed.__dlpack_device__()
    copied = place.copy()
    assert (copied.allocator, copied.device) == (A.cuda, LAST)
