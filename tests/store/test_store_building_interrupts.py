"""Groups that are built in place: Ctrl-C at each step, forks, clients that were closed, paths."""

import os
import random
from contextlib import suppress

import numpy as np
import pytest

from hamr.store import NotSealed, ObjectNotFound, Sealed, connect
from tests.store.test_store_interrupted_anywhere import is_interrupted
from tests.support.processes import run_code, scaled, wait_until


def steps():
    """Numbers of steps, with larger gaps in short runs."""
    step, stride = 0, max(1, int(20 / scaled(20, 1)))
    while True:
        yield step
        step += random.randint(1, stride)


def test_an_add_that_is_interrupted_adds_all_or_nothing(client):
    expected = {}
    with client.build_group("g", bytes="4MiB") as space:
        for step in steps():
            array = space.empty(3)
            array.fill(step)
            path, value = str(step), [array, np.full(2, step), np.zeros(0), 3]
            was = is_interrupted(step, lambda p=path, v=value: space.add(p, v, copy=True))
            try:
                space.add(path, value, copy=True)
            except ValueError as error:
                assert "was added before" in str(error)  # noqa: PT017
            expected[path] = step
            if not was:
                break
    found = client.get_group("g")
    assert set(found.tree) == set(expected)
    for path, step in expected.items():
        first, second, third, number = found.tree[path]
        assert (first.get() == step).all()
        assert (second.get() == step).all()
        assert (third.shape, number) == ((0,), 3)
    assert client.info(found.id).arrays == 3 * len(expected)


def test_a_seal_that_is_interrupted_can_be_tried_again(client):
    for step in steps():
        space = client.build_group(bytes=3000)
        array = space.empty(3)
        array.fill(step)
        space.add("w", array)
        was = is_interrupted(step, space.seal)
        with suppress(Sealed, ValueError):  # it was sealed or discarded before
            space.seal()
        try:
            assert (client.get_group(space.id)["w"].get() == step).all()
        except (NotSealed, ObjectNotFound):
            assert was
        array.close()
        if not was:
            break
    assert client.statistics()["unsealed"] == 0


def test_a_client_that_was_closed(server):
    with connect(server.path) as other:
        client = connect(server.path)
        space = client.build_group("g", bytes=10_000)
        array = space.empty(3)
        array.fill(5)
        client.close()
        space.add("w", array)
        with pytest.raises(ValueError, match="the client was closed"):
            space.seal()
        assert (array.get() == 5).all()
        space.abort()
        array.close()
        wait_until(lambda: other.statistics()["objects"] == 0)


def test_two_arrays_of_one_path_are_refused(client):
    with client.build_group("g", bytes=10_000) as space:
        space.add("a.b", np.ones(1), copy=True)
        for _ in range(2):
            with pytest.raises(ValueError, match=r"^arrays has the path 'a\.b' already"):
                space.add("a", {"c": np.zeros(1), "b": np.zeros(1)}, copy=True)
        with pytest.raises(ValueError, match=r"^arrays has the path 'a\.b' already"):
            space.add("a", {"b": 3})
        space.add("a", {"c": np.zeros(2)}, copy=True)
        with pytest.raises(ValueError, match=r"^arrays has the path 'a\.c' already"):
            space.add("a.c", np.ones(1), copy=True)
        space.add("x", {"y": np.ones(1)}, copy=True)
        with pytest.raises(ValueError, match=r"'z\.y\.z' twice"):
            space.add("z", {"y.z": np.ones(1), "y": {"z": np.ones(1)}}, copy=True)
    assert list(client.get_group("g")) == ["a.b", "a.c", "x.y"]


FORKS = """
import os, signal, threading
import hamr
from hamr.store import connect

client = connect(os.environ["SOCKET"])
space = client.build_group("g", bytes=10_000)
array = space.empty(100)
array.fill(3)
held, done = threading.Event(), threading.Event()

def hold():
    with space._lock:
        held.set()
        done.wait()

thread = threading.Thread(target=hold, daemon=True)
thread.start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    for call in (lambda: space.add("x", 3), lambda: space.add("w", array), space.seal, space.abort):
        try:
            call()
            os._exit(1)
        except hamr.ForkError:
            pass
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
done.set()
thread.join()
space.add("w", array)
space.seal()
print((client.get_group("g")["w"].get() == 3).all())
"""


def test_a_child_that_was_forked_while_a_thread_adds(server):
    assert run_code(FORKS, env={**os.environ, "SOCKET": server.path}) == "True\n"
