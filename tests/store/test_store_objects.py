import copy
import gc
import pickle
import time

import numpy as np
import pytest

import hamr
from hamr.store import (
    NotSealed,
    ObjectID,
    ObjectInfo,
    ObjectNotFound,
    Sealed,
    StoreTimeout,
    connect,
)
from tests.support.processes import wait_until

#: Bytes: a small object in memory that several share, one of its own, and one of many pages.
SIZES = [1, 1024, 64 << 10, 3 << 20]


def filled(client, n=1024, value=7, **options):
    with client.create(n, "uint8", **options) as builder:
        builder.buffer.fill(value)
    return builder.id


@pytest.mark.parametrize("n", SIZES)
def test_an_object_is_had_in_place_and_for_reading_only(client, n):
    id = filled(client, n)
    first, second = client.get(id), client.get(id)
    assert first.readonly
    assert first.ptr == second.ptr
    assert np.asarray(first).tolist() == [7] * n if n < 2000 else (np.asarray(first) == 7).all()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(first)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        first.fill(1)
    assert first.allocator is hamr.Allocator.shared
    assert first.source_protocol == "store"


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "complex128", "uint64"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
def test_every_type_and_shape_comes_back(client, dtype, shape):
    values = hamr.Buffer(shape, dtype, fill=1)
    found = client.get(client.put(values))
    assert (found.shape, found.dtype, found.readonly) == (shape, values.dtype, True)
    assert found.astype("float32").get().tolist() == values.astype("float32").get().tolist()


def test_put_takes_gaps_and_orders_of_numpys(client):
    values = np.arange(24.0).reshape(4, 6)
    for part in (values[::2, ::-1], values.T, np.asfortranarray(values)):
        assert np.array_equal(client.get(client.put(part)), part)


def test_what_is_not_sealed_is_had_by_asking_for_it_alone(client):
    builder = client.create(100_000, "uint8")
    with pytest.raises(NotSealed, match=builder.id):
        client.get(builder.id)
    shared = client.get(builder.id, unsafe=True)
    builder.buffer[3] = 9
    assert int(shared[3]) == 9
    shared[4] = 8
    assert int(builder.buffer[4]) == 8
    assert not shared.readonly
    builder.abort()
    with pytest.raises(ObjectNotFound):
        client.get(builder.id)


def test_a_small_one_that_is_not_sealed_is_for_reading_alone(server, client):
    """Who has not made it has its memory mapped for reading: a write would end the process."""
    maker = connect(server.path)
    maker.create(3).seal()  # so that its slab has a place for what is sealed
    builder = maker.create(5, "int32")
    found = client.get(builder.id, unsafe=True)
    assert found.readonly
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1
    with pytest.raises(NotSealed, match=builder.id):
        pickle.dumps(found)
    builder.buffer.fill(4)
    assert found.get().tolist() == [4] * 5
    builder.seal()
    assert pickle.loads(pickle.dumps(maker.get(builder.id))).get().tolist() == [4] * 5


def test_a_block_that_raises_gives_its_object_up(client):
    with pytest.raises(KeyError), client.create(10) as builder:
        raise KeyError
    assert not client.exists(builder.id)
    with pytest.raises(ValueError, match="was given up"):
        builder.seal()
    with pytest.raises(ValueError, match="was given up"):
        builder.buffer  # noqa: B018


def test_a_sealed_object_is_sealed_for_good(client):
    with client.create(10) as builder:
        builder.buffer.fill(3)
    for again in (builder.seal, builder.abort, lambda: builder.buffer):
        with pytest.raises(Sealed, match=f"object {builder.id} was sealed: get it"):
            again()
    assert client.get(builder.id)[9] == 3


def test_a_builder_that_goes_gives_its_object_up(client):
    builder = client.create(100_000)
    id = builder.id
    kept = np.asarray(builder.buffer)
    del builder
    gc.collect()
    assert client.exists(id)  # its memory is still in use
    del kept
    gc.collect()
    assert not client.exists(id)


def test_what_is_written_after_the_end_is_nobody_elses_to_see(client):
    builder = client.create(100_000, "uint8")
    kept = np.asarray(builder.buffer)
    kept[:] = 1
    builder.seal()
    found = np.asarray(client.get(builder.id))
    kept[0] = 2
    assert found[0] == 1


def test_what_is_deleted_stays_for_those_who_have_it(client):
    id = filled(client, 100_000)
    found = client.get(id)
    view = np.asarray(found)[5:]
    client.delete(id)
    assert not client.exists(id)
    del found
    gc.collect()
    before = client.statistics()["memory"]["host"]["used"]
    assert (view == 7).all()
    del view
    gc.collect()
    assert client.statistics()["memory"]["host"]["used"] < before
    with pytest.raises(ObjectNotFound):
        client.delete(id)


def test_a_lease_lasts_as_long_as_anything_of_its_memory(client):
    id = filled(client)
    found = client.get(id)[1:3]
    assert client.info(id).leases == 1
    held = memoryview(found.get_host_accessible())
    del found
    gc.collect()
    assert client.info(id).leases == 1
    del held
    gc.collect()
    assert client.info(id).leases == 0


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kept", [False, True])
def test_a_makers_lease_ends_with_the_seal_unless_something_has_the_memory(client, n, kept):
    builder = client.create(n, "uint8")
    builder.buffer.fill(7)
    held = builder.buffer[:1] if kept else None
    builder.seal()
    assert client.info(builder.id).leases == kept
    assert held is None or held[0] == 7
    del held
    gc.collect()
    assert client.info(builder.id).leases == 0


@pytest.mark.parametrize("n", [0, 12])
@pytest.mark.parametrize(
    "share",
    [
        lambda found: found[:],
        lambda found: found.reshape(3, -1),
        lambda found: found.reshape(3, -1).get_host_accessible(),
        np.asarray,
        memoryview,
    ],
)
def test_a_view_keeps_the_lease_also_of_no_bytes(client, n, share):
    id = filled(client, n)
    shared = share(client.get(id))
    gc.collect()
    assert client.info(id).leases == 1
    del shared
    gc.collect()
    assert client.info(id).leases == 0


def test_waiting_ends_when_it_is_sealed_or_late(client):
    builder = client.create(8)
    with pytest.raises(StoreTimeout):
        client.get(builder.id, wait=True, timeout=0.01)
    assert client.wait([builder.id], timeout=0.01) == ([], [builder.id])
    builder.seal()
    assert client.wait([builder.id]) == ([builder.id], [])
    assert client.get(builder.id, wait=True).shape == (8,)
    with pytest.raises(ValueError, match="count"):
        client.wait([builder.id], count=2)


def test_metadata_is_what_json_has(client):
    id = client.put(np.zeros(3), metadata={"step": 3, "names": ["a", None]})
    assert client.metadata(id) == {"step": 3, "names": ["a", None]}
    assert client.metadata(filled(client)) is None
    for wrong in (object(), float("nan"), {1j: 2}):
        with pytest.raises((TypeError, ValueError), match="metadata"):
            client.put(np.zeros(3), metadata=wrong)
    with pytest.raises(ValueError, match="metadata"):
        client.put(np.zeros(3), metadata="x" * 100_000)


def test_metadata_that_some_client_could_not_read_is_refused(client):
    nested = []
    for _ in range(900):
        nested = [nested]
    builder = client.create(1)
    for wrong in ({"a": "\ud800"}, nested, 10**2000):
        with pytest.raises(ValueError, match="metadata"):
            client.put(np.zeros(3), metadata=wrong)
    assert [info.id for info in client.list()] == [builder.id]


def test_metadata_that_cannot_be_read_is_said_of_the_object(client, monkeypatch):
    id = client.put(np.zeros(3), metadata=1)
    told = (*client.info(id)[:-2], None, "metadata is bad")
    info = ObjectInfo._of(told)
    assert isinstance(info.metadata, ValueError)
    monkeypatch.setattr(client, "info", lambda id: info)
    with pytest.raises(ValueError, match="metadata is bad"):
        client.metadata(id)


@pytest.mark.parametrize("metadata", [{1: 2}, {"a": [{None: 1}]}, [({True: 0},)], {1.5: "x"}])
def test_keys_of_which_json_makes_others_are_refused(client, metadata):
    for call in (client.put, client.create):
        with pytest.raises(TypeError, match=r"^metadata is .*: the key .* is no text: write "):
            call(np.zeros(3) if call == client.put else 3, metadata=metadata)
    assert client.statistics()["objects"] == 0
    found = client.put(np.zeros(3), metadata={"1": [{"a": (1, 2)}]})
    assert client.metadata(found) == {"1": [{"a": [1, 2]}]}


def test_objects_of_a_session_go_with_it(server, client):
    ours = connect(server.path)
    large, small = (ours.put(np.ones(n), session=True, name=str(n)) for n in (100_000, 3))
    kept, other = ours.put(np.zeros(3)), ours.create(10, session=True)
    sealed = other.seal()
    held = client.get(large)
    with pytest.raises(TypeError, match=r"^session is 1"):
        ours.put(np.zeros(3), session=1)
    assert all(client.exists(id) for id in (large, small, sealed, kept))
    ours.close()
    del ours, other
    wait_until(lambda: not client.exists(large))
    assert [client.exists(id) for id in (small, sealed, kept)] == [False, False, True]
    with pytest.raises(ObjectNotFound):
        client.get(name="3")
    assert np.asarray(held).sum() == 100_000
    del held
    wait_until(lambda: client.statistics()["leases"] == 0)


def test_a_pickle_carries_the_id_and_no_elements(client):
    id = client.put(np.arange(100_000.0).reshape(100, 1000))
    found = client.get(id)
    for part in (found, found[3:50:7, ::-2], found[5]):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            text = pickle.dumps(part, protocol)
            assert len(text) < 400
            again = pickle.loads(text)
            assert again.readonly
            assert np.array_equal(again, part)
    assert copy.deepcopy(found).ptr != 0
    assert pickle.loads(pickle.dumps(client)).exists(id)


def test_a_pickle_of_what_may_still_change_is_refused(client):
    builder = client.create(100)
    with pytest.raises(NotSealed, match="seal it, or pickle a copy"):
        pickle.dumps(builder.buffer)
    assert len(pickle.loads(pickle.dumps(builder.buffer.copy()))) == 100


def test_a_mirror_of_an_object_is_written_back_unless_it_is_sealed(client):
    builder = client.create(6, "int32")
    with builder.buffer.mirror() as values:
        values[:] = range(6)
    with builder.buffer.mirror(initialize=True) as values:
        assert values.tolist() == list(range(6))
    builder.seal()
    with client.get(builder.id).mirror() as values:
        assert values.tolist() == list(range(6))
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


@pytest.mark.parametrize("wrong", ["", "z" * 32, "0" * 31, "0" * 33])
def test_ids_are_checked(client, wrong):
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        client.get(wrong)
    with pytest.raises(TypeError):
        client.get(7)


def test_ids_are_texts():
    id = ObjectID("AB" * 16)
    assert id == "ab" * 16
    assert pickle.loads(pickle.dumps(id)) == id
    assert type(pickle.loads(pickle.dumps(id))) is ObjectID
    assert repr(id) == f"ObjectID('{'ab' * 16}')"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1,), ValueError),
        (("x",), TypeError),
        ((3, "nonsense"), TypeError),
        ((3, "f4", "cuda_host"), ValueError),
        ((3, "f4", "none"), ValueError),
        ((2**62, "f8"), (ValueError, MemoryError)),
    ],
)
def test_what_cannot_be_made_is_refused_and_nothing_is_left(client, arguments, error):
    with pytest.raises(error):
        client.create(*arguments)
    assert client.statistics()["objects"] == 0


def test_what_was_had_of_a_closed_client_keeps_its_place(server):
    """Small objects have places in memory that others share, which are used again."""
    with connect(server.path) as maker:
        id = filled(maker, 1000, 7)
        with connect(server.path) as other:
            kept = other.get(id)
        assert maker.info(id).leases == 1
        maker.delete(id)
        for value in range(20):
            filled(maker, 1000, value)
        assert (np.asarray(kept) == 7).all()
        del kept
        gc.collect()
        while maker.statistics()["connections"] > 1:  # the server is told when it comes to it
            time.sleep(0.01)


def test_what_was_had_outlives_the_client(server):
    client = connect(server.path)
    found = client.get(client.put(np.arange(50_000)))
    client.close()
    assert np.array_equal(found, np.arange(50_000))
    with pytest.raises(ValueError, match="closed"):
        client.list().__next__()
    client.close()
