import gc
import threading

import numpy as np
import pytest

from hamr.store import NameTaken, ObjectNotFound, StoreTimeout, connect
from tests.support.processes import wait_until


def test_an_object_is_found_by_its_names(client):
    first, second = client.put(np.zeros(3), name="a"), client.put(np.ones(3))
    client.put_name("b", first)
    assert client.get_name("a") == client.get_name("b") == first
    assert client.info(first).names == ("a", "b")
    with pytest.raises(NameTaken) as caught:
        client.put_name("a", second)
    assert caught.value.id == first
    client.put_name("a", second, replace=True)
    assert client.get_name("a") == second
    client.drop_name("b")
    with pytest.raises(ObjectNotFound, match='name "b"'):
        client.get_name("b")
    client.delete(second)
    with pytest.raises(ObjectNotFound):
        client.get_name("a")


def test_a_name_that_is_taken_leaves_nothing_behind(client):
    client.put(np.zeros(3), name="a")
    with pytest.raises(NameTaken):
        client.put(np.zeros(3), name="a")
    assert client.statistics()["objects"] == 1


def test_a_name_is_waited_for(client):
    with pytest.raises(StoreTimeout, match="'later'"):
        client.get_name("later", wait=True, timeout=0.01)
    found = []
    waiting = threading.Thread(target=lambda: found.append(client.get_name("later", wait=True)))
    waiting.start()
    id = client.put(np.zeros(3), name="later")
    waiting.join(30)
    assert found == [id]


@pytest.mark.parametrize("wrong", ["", "x" * 10_000])
def test_names_are_checked(client, wrong):
    with pytest.raises(ValueError, match="name"):
        client.get_name(wrong)
    with pytest.raises(TypeError, match="name"):
        client.put_name(3, "0" * 32)
    with pytest.raises(ValueError, match="id is 'x'"):
        client.put_name("name", "x")


def test_the_order_of_name_and_id(client):
    """The name comes first, as in Go, C and C++; the other order still works, and says so."""
    first, second = client.put(np.zeros(3)), client.put(np.ones(3))
    client.put_name("a", first)
    client.put_name(name="b", id=first)
    with pytest.warns(DeprecationWarning, match=r"write put_name\(name, id\)") as told:
        client.put_name(first, "c")
    assert told[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="the name comes first"):
        client.put_name(str(second), "a", True)
    assert sorted(client.info(first).names) == ["b", "c"]
    assert client.info(second).names == ("a",)
    client.put_name(str(second), first)  # a name may look like an id
    assert client.get_name(str(second)) == first
    with pytest.warns(DeprecationWarning, match="the name comes first"):
        client.put_name(second, "0" * 32)  # as a hash does
    assert client.get_name("0" * 32) == second


def test_a_name_and_an_id_by_their_keywords_are_what_they_are_called(client):
    id, other = client.put(np.zeros(3)), client.put(np.ones(3))
    client.put(np.ones(3), name=other)
    for call in (
        lambda: client.put_name(name=id, id="latest"),
        lambda: client.put_name(str(id), id="latest"),
        lambda: client.put_name(name=str(id), id="latest"),
    ):
        with pytest.raises(ValueError, match="id is 'latest'"):
            call()
    client.put_name(id=id, name="ab" * 16)
    client.put_name(name=other, id=id, replace=True)
    assert sorted(client.info(id).names) == sorted(["ab" * 16, str(other)])


def test_objects_are_listed_in_the_order_in_which_they_were_made(client):
    ids = [client.put(np.full(n, n), name=f"run{n % 2}/{n}") for n in range(40)]
    assert [info.id for info in client.list()] == ids
    assert [info.id for info in client.list("run1/")] == ids[1::2]
    builder = client.create((2, 3), "f4", metadata=[1])
    *_, last = client.list()
    assert (last.shape, last.dtype, last.nbytes, last.device) == ((2, 3), "float32", 24, "host")
    assert (last.sealed, last.leases, last.metadata) == (False, 1, [1])
    builder.abort()


def test_events_tell_what_happens(client):
    with client.events() as events:
        assert events.take() is None
        id = client.put(np.zeros(3), name="x")
        client.delete(id)
        told = [events.take(5) for _ in range(4)]
        assert {event.id for event in told} == {id}
        assert [event.kind for event in told] == ["created", "sealed", "named", "deleted"]
        assert told[2].name == "x"
        client.put(np.zeros(3))
        assert next(events).kind == "created"
    assert list(events) == []


def test_an_object_is_had_by_its_name(client):
    id = client.put(np.arange(3), name="field")
    assert client.get(name="field").get().tolist() == [0, 1, 2]
    assert client.get(name="field", wait=True, timeout=10).get().tolist() == [0, 1, 2]
    with pytest.raises(ObjectNotFound, match='name "other"'):
        client.get(name="other")
    with pytest.raises(StoreTimeout, match="'other'"):
        client.get(name="other", wait=True, timeout=0.01)
    with pytest.raises(TypeError, match=r"id is .* and name is 'field': accepted is one"):
        client.get(id, name="field")
    with pytest.raises(TypeError, match="id is None: accepted is an ObjectID"):
        client.get()


@pytest.mark.parametrize("method", ["get", "info", "delete", "exists", "pin"])
def test_a_name_in_place_of_an_id(client, method):
    client.put(np.arange(3), name="field")
    with pytest.raises(ValueError, match=r"id is 'field'.*get\(name='field'\).*get_name"):
        getattr(client, method)("field")


def test_events_of_a_connection_that_nobody_keeps(server, client):
    with connect(server.path).events() as events:
        gc.collect()
        id = client.put(np.zeros(3))
        assert [next(events).id, next(events).kind] == [id, "sealed"]
    del events
    gc.collect()
    wait_until(lambda: server.statistics()["connections"] == 1)


def test_one_object_waited_for_twice(client):
    id = client.put(np.zeros(3))
    assert client.wait([id, id]) == ([id], [])
    assert client.wait([id, id], 1) == ([id], [])
