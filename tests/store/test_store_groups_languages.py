"""Groups between Python and a program in C, which reads and writes them by Go's code."""

import json
import random
import subprocess

import numpy as np
import pytest

from hamr.store import Group
from tests.store.trees import same, tree
from tests.support.c_programs import COMPILER, PROGRAMS, compile_program
from tests.support.processes import scaled

pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")

LONG = "layers." * 3000 + "w"
GIVEN = {
    "a.b": {"c": np.arange(3)},
    "a": {"b.c.d": np.float32(2), "b": [np.zeros((2, 0, 3)), None]},
    LONG: np.arange(6, dtype="c16").reshape(2, 3).T,
    "<&>\u2028\U0001f600": (2**2047, -(10**600), 1e300, float("-inf")),
    "": np.ones(1, "?"),
}


def leaves(node, path=None):
    """The paths and values of a structure, in order."""
    if not isinstance(node, (dict, list, tuple)):
        yield path, node
        return
    for key, each in node.items() if isinstance(node, dict) else enumerate(node):
        yield from leaves(each, str(key) if path is None else f"{path}.{key}")


def is_value(leaf):
    return leaf is None or isinstance(leaf, (bool, int, float, str))


def told(value):
    """How C is told of a value."""
    return ["float", str(value)] if isinstance(value, float) and np.isinf(value) else value


def test_what_python_wrote_is_read_and_written_by_go(server, client, tmp_path):
    program = compile_program(PROGRAMS / "store_groups.c", tmp_path / "groups")
    choose = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    given = [GIVEN, {}, [], ((),), *(tree(choose) for _ in range(scaled(200, 40)))]
    for i, each in enumerate(given):
        metadata = {"of": [i]} if i % 2 else None
        if isinstance(each, dict) and i % 3 == 0:
            with client.build_group(f"{i}", bytes=100_000, metadata=metadata) as space:
                for key, value in each.items():
                    space.add(key, value, copy=True)
        else:
            client.put_group(each, name=f"{i}", metadata=metadata)
    names = "".join(f"{i}\n" for i in range(len(given)))
    command = [str(program), server.path, "again"]
    done = subprocess.run(command, input=names, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for i, (each, values) in enumerate(zip(given, done.stdout.split("\n")[:-1], strict=True)):
        flat = dict(leaves(each))
        arrays = {path: leaf for path, leaf in flat.items() if not is_value(leaf)}
        others = {path: told(leaf) for path, leaf in flat.items() if is_value(leaf)}
        assert repr(json.loads(values)) == repr(others)
        again: Group = client.get_group(f"{i} again")
        assert same(again.tree, arrays)
        assert again.metadata == ({"of": [i]} if i % 2 else None)
