"""Ctrl-C at each step of the store's Python code: no lease, object or connection stays behind."""

import dis
import os
import pickle
import random
import sys

import numpy as np
import pytest

import hamr.store
from hamr.store import Server, connect, leases
from tests.support.processes import scaled, wait_until

FOLDER = os.path.dirname(hamr.store.__file__)
#: CPython handles no signals before these, except after a call of a function that is not Python's.
RETURNS = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap}
CALLS = {code for name, code in dis.opmap.items() if name.startswith("CALL")}


class Interrupt:
    """Raises KeyboardInterrupt before a step, counted from 0, of the store's Python code."""

    def __init__(self, step):
        self.left = step
        self.called = None  # the frame whose call was the last step of all

    def trace(self, frame, event, _):
        called, self.called = self.called, None
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            code = frame.f_code.co_code[frame.f_lasti]
            self.left -= code not in RETURNS or called is frame
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
            self.called = frame if code in CALLS else None
        return self.trace


def is_interrupted(step, call):
    """Whether the call had so many steps."""
    before, interrupt = sys.gettrace(), Interrupt(step)
    # Python 3.12 reports opcodes only if a frame asked for them before settrace.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(interrupt.trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return interrupt.left < 0  # the exception came to a finaliser


def sweep(call, check, strides=1):
    """Interrupt a call at each of its steps, one after the other, or with strides up to so many."""
    step = 0
    while is_interrupted(step, call):
        check(step)
        step += random.randint(1, strides)
    assert step > 20


@pytest.fixture
def watcher(server):
    with connect(server.path) as watcher:
        yield watcher


def figures_are(watcher, **wanted):
    """A check that the server comes to these figures."""

    def check(step):
        def come():
            figures = watcher.statistics()
            return {name: figures[name] for name in wanted} == wanted

        try:
            wait_until(come)
        except AssertionError:
            raise AssertionError(f"step {step}: {watcher.statistics()}, not {wanted}") from None

    return check


SIZES = (30, 30_000)


@pytest.mark.parametrize("size", SIZES)
def test_get(client, watcher, size):
    id = client.put(np.arange(size), name="it")
    nothing = figures_are(watcher, leases=0, objects=1)
    sweep(lambda: client.get(id), nothing)
    sweep(lambda: client.get(name="it", wait=True, timeout=5), nothing)
    assert leases.find(client.get(id)) is not None


@pytest.mark.parametrize("size", SIZES)
def test_the_end_of_a_lease(client, watcher, size):
    id = client.put(np.arange(size))

    def end():
        found = [client.get(id)]
        del found[0]

    sweep(end, figures_are(watcher, leases=0, objects=1))


@pytest.mark.parametrize("size", SIZES)
def test_create(client, watcher, size):
    nothing = figures_are(watcher, leases=0, objects=0, unsealed=0)
    sweep(lambda: client.create(size), nothing)
    sweep(lambda: client.create(size).abort(), nothing)


@pytest.mark.parametrize("size", SIZES)
def test_seal(client, watcher, size):
    def seal():
        id = None
        try:
            with client.create(size) as builder:
                id = builder.id
        except BaseException:
            if id is not None and client.exists(id):
                client.delete(id)  # it was sealed before
            raise
        client.delete(id)

    sweep(seal, figures_are(watcher, leases=0, unsealed=0))


@pytest.mark.parametrize("array", [np.arange(30), np.arange(30_000), np.arange(60)[::2]])
def test_put(client, watcher, array):
    sweep_puts(client.delete, watcher, lambda **named: client.put(array, **named), name="it")


def sweep_puts(delete, watcher, call, **named):
    def put(**arguments):
        try:
            delete(call(**arguments))
        except BaseException as error:
            code = error.__traceback__.tb_next.tb_frame.f_code
            # Once put has returned, the object is the caller's.
            if code.co_name == delete.__name__:
                for info in watcher.list():
                    watcher.delete(info.id)
            raise

    nothing = figures_are(watcher, leases=0, objects=0, unsealed=0, names=0)
    sweep(put, nothing)
    sweep(lambda: put(**named), nothing)


def test_put_group(client, watcher):
    arrays = {"a": [np.arange(30), 3], "b": np.arange(30_000)}
    sweep_puts(client.delete, watcher, lambda **named: client.put_group(arrays, **named), name="it")


def test_build_group(client, watcher):
    def build():
        id = None
        try:
            with client.build_group("it", bytes=1000) as space:
                id = space.id
                space.add("a", space.empty(3), metadata=1)
        except BaseException:
            if id is not None and client.exists(id):
                client.delete(id)  # it was sealed before
            raise
        try:
            client.delete(id)
        except KeyboardInterrupt:
            for info in watcher.list():
                watcher.delete(info.id)
            raise

    nothing = figures_are(watcher, leases=0, objects=0, unsealed=0, names=0)
    sweep(build, nothing, strides=max(1, int(40 / scaled(20, 1))))


def test_put_many(client, watcher):
    arrays = [np.arange(30), np.arange(30_000), np.arange(60)[::2]]
    put = lambda **named: client.put_many(arrays, **named)  # noqa: E731
    sweep_puts(client.delete_many, watcher, put, names=["a", None, "b"])


def test_get_many(client, watcher):
    ids = client.put_many([np.arange(30), np.arange(30_000)], names=["a", None])
    nothing = figures_are(watcher, leases=0, objects=2)
    sweep(lambda: client.get_many([*ids, "a"]), nothing)
    assert leases.find(client.get_many(ids)[1]) is not None


def test_get_group(client, watcher):
    id = client.put_group({"a": [np.arange(30), 3]}, name="it")
    nothing = figures_are(watcher, leases=0, objects=1)
    sweep(lambda: client.get_group(id), nothing)
    sweep(lambda: client.get_group("it", only=["a.0"], wait=True, timeout=5), nothing)


def test_a_pickle_is_opened(client, watcher):
    id = client.put(np.arange(30_000))
    pickled = pickle.dumps(client.get(id))
    pickle.loads(pickled)  # connects
    sweep(lambda: pickle.loads(pickled), figures_are(watcher, leases=0, objects=1))


def test_connections_and_events(server, client, watcher):
    before = watcher.statistics()["connections"]

    def call():
        with connect(server.path) as other, other.events():
            pass

    sweep(call, figures_are(watcher, connections=before))


def test_a_server(tmp_path):
    path = str(tmp_path / "other" / "socket")

    def call():
        with Server(path):
            pass

    # A server that was left would refuse the next one at its path.
    sweep(call, lambda step: Server(path).close())
