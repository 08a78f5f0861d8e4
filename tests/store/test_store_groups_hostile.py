"""Groups that another client wrote, whose directories say what is not so."""

import gc
import json

import numpy as np
import pytest

from hamr.store import StoreError
from tests.support.processes import wait_until

DIRECTORY = {"version": 1, "tree": {"a": 0}, "types": ["float32"], "arrays": [[0, 0, 4]]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"version": None},
        {"tree": {"a": 1}},
        {"tree": {"a": -1}},
        {"tree": None},
        {"tree": 0},
        {"tree": "text"},
        {"tree": ["value", 1]},
        {"tree": {"a": 1.5}},
        {"tree": {"a": ["value", {"b": 0}]}},
        {"tree": {"a": ["value", 1, 2]}},
        {"tree": {"a": []}},
        {"tree": {"a": ["set", 0]}},
        {"tree": {"a": [[], 0]}},
        {"tree": {"a": ["float", "x"]}},
        {"types": []},
        {"types": ["float128"]},
        {"types": [3]},
        {"types": None},
        {"arrays": None},
        {"arrays": [[]]},
        {"arrays": [[0]]},
        {"arrays": [["0", 0, 4]]},
        {"arrays": [[0, 0, -1]]},
        {"arrays": [[-4, 0, 1]]},
        {"arrays": [[2, 0, 1]]},
        {"arrays": [[0, 0, 1 << 40]]},
        {"arrays": [[0, 0, 1 << 62, 1 << 62]]},
        {"arrays": [[1 << 70, 0, 1]]},
        {"arrays": [[0, 0, 0, 1 << 62, 1 << 62]]},
        {"arrays": [[1 << 20, 0, 1]]},
        {"arrays": [[0, 1 << 70, 1]]},
        {"arrays": [[0, 0, *[1] * 100]]},
        {"metadata": 3},
        {"metadata": [["a", 1]]},
        {"arrays": {"0": [0, 0, 4]}},
    ],
)
def test_a_directory_that_lies_is_refused(client, wrong):
    text = json.dumps({**DIRECTORY, **wrong}).encode()
    refuse(client, text)


def refuse(client, text, **facts):
    elements = np.frombuffer(bytes(16) + text, "u1")
    facts = {"version": 1, "arrays": 1, "at": 16, "bytes": len(text), **facts}
    id = client.put(elements, metadata={"hamr.group": facts})
    for only in (None, ["a"]):
        with pytest.raises(StoreError, match=f"^object {id} is a group that cannot be read"):
            client.get_group(id, only=only)
    gc.collect()
    wait_until(lambda: client.statistics()["leases"] == 0)


def test_what_is_no_directory_is_refused(client):
    good = json.dumps(DIRECTORY).encode()
    for text in (b"", b"{", b"[" * 100_000, b"\xff", b"3", b"[]", b'{"version":1}'):
        refuse(client, text)
    for levels in (101, 900):
        refuse(
            client, good.replace(b'"a": 0', b'"a": ' + b'{"a": ' * levels + b"0" + b"}" * levels)
        )
    for facts in ({"at": 17}, {"at": -1}, {"at": 1 << 70}, {"bytes": -1}, {"bytes": 1 << 62}):
        refuse(client, good, **facts)
    facts = {"version": 1, "arrays": 1, "at": 16, "bytes": len(good)}
    elements = np.frombuffer(np.ones(4, "f4").tobytes() + good, "u1")
    group = client.get_group(client.put(elements, metadata={"hamr.group": facts}))
    assert group["a"].get().tolist() == [1] * 4


def put_written(client, text, elements):
    """A group as another client may write it."""
    text = json.dumps(text).encode()
    facts = {"version": 1, "arrays": 1, "at": len(elements), "bytes": len(text)}
    return client.put(np.frombuffer(elements + text, "u1"), metadata={"hamr.group": facts})


def test_arrays_of_one_offset_may_differ_in_size(client):
    elements = bytes(range(256)) * 2 + bytes([7]) * 256
    told = {"version": 1, "tree": {"a": 0, "b": 1, "c": 2, "d": 3}, "types": ["uint8"]}
    rows = [[0, 0, 2], [512, 0, 256], [0, 0, 512], [0, 0, 0]]
    id = put_written(client, {**told, "arrays": rows}, elements)
    for private in (False, True):
        group = client.get_group(id, private=private)
        found = [bytes(each.get()) for each in group.values()]
        assert found == [elements[at : at + size] for at, _, size in rows]


def test_arrays_that_overlap_are_not_copied(client):
    told = {"version": 1, "tree": ["list", *range(9)], "types": ["uint8"]}
    told["arrays"] = [[at, 0, 4096] for at in range(9)]
    id = put_written(client, told, bytes(5000))
    assert len(client.get_group(id)) == 9
    with pytest.raises(StoreError, match="its arrays overlap"):
        client.get_group(id, private=True)
