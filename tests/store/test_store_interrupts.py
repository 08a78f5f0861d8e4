"""Calls to a server that does not answer: Ctrl-C ends them, and closing does not wait for ever."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import hamr.store.client as client_module
from hamr.store import Client, Server, StoreTimeout, connect, patience
from tests.support.processes import wait_until


def stopped(process):
    """Stop a server; returns when it stands still."""
    pid = process.process.pid
    process.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: ") T " in Path(f"/proc/{pid}/stat").read_text())


def wait_for_signal(entered, call):
    entered.set()
    call()
    signal.pause()  # a call that came back too soon


def interrupted(call):
    """Call what hangs, and have Ctrl-C end it."""
    entered = threading.Event()
    timer = threading.Timer(0.08, lambda: (entered.wait(), os.kill(os.getpid(), signal.SIGINT)))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        wait_for_signal(entered, call)
    timer.join()


def test_ctrl_c_ends_every_call(server_process, ctrl_c):
    client = connect(server_process.path)
    id = client.put(np.arange(30_000))
    builder, other, events = client.create(70_000), client.create(7), client.events()
    watch = client.watch("nobody")
    stopped(server_process)
    for call in (
        lambda: client.get(id),
        lambda: client.get(id, wait=True),
        lambda: client.create(100),
        lambda: client.put(np.zeros(100)),
        lambda: client.put_name("name", id),
        lambda: client.replace("name", id),
        lambda: client.get_name("nobody", wait=True),
        lambda: client.watch("name"),
        lambda: next(watch),
        lambda: watch.take(100),
        lambda: client.exists(id),
        lambda: list(client.list()),
        lambda: client.wait([id]),
        client.statistics,
        client.events,
        lambda: next(events),
        lambda: connect(server_process.path),
        other.abort,
        builder.seal,
    ):
        interrupted(call)
    server_process.process.send_signal(signal.SIGCONT)
    wait_until(lambda: client.statistics()["leases"] == 0)
    wait_until(lambda: client.statistics()["objects"] == 1)
    assert np.array_equal(client.get(id), np.arange(30_000))


@pytest.mark.parametrize("replace", [False, True])
def test_ctrl_c_ends_a_put_while_it_names(server_process, ctrl_c, monkeypatch, replace):
    """The server gives the name all the same: what has replaced another object stays."""
    client, named = connect(server_process.path), Client._named
    if replace:
        client.put(np.ones(10), name="it")

    def name(*arguments):
        stopped(server_process)
        return named(*arguments)

    monkeypatch.setattr(Client, "_named", name)
    interrupted(lambda: client.put(np.zeros(10), name="it", replace=replace))
    server_process.process.send_signal(signal.SIGCONT)
    wait_until(lambda: client.statistics()["objects"] == replace)
    assert client.statistics()["names"] == replace
    assert not replace or client.get(name="it")[0] == 0


def test_a_wait_ends_though_the_server_stands_still(server_process):
    with connect(server_process.path) as client:
        builder, found = client.create(10), []
        stopped(server_process)
        ids = [builder.id]
        thread = threading.Thread(target=lambda: found.append(client.wait(ids, timeout=0.05)))
        thread.start()
        thread.join(5)
        assert found == [([], ids)]
        server_process.process.send_signal(signal.SIGCONT)
        assert client.wait([builder.seal()], timeout=30) == (ids, [])


def test_what_is_there_is_found_though_the_answer_comes_after_the_time(server_process):
    client = connect(server_process.path)
    id = client.put(np.arange(30), name="it")

    def is_found(ask):
        stopped(server_process)
        goes_on = threading.Timer(0.08, server_process.process.send_signal, (signal.SIGCONT,))
        goes_on.start()
        try:
            return ask() is not None
        except StoreTimeout:
            return False  # this thread, or the timer's, did not run for long
        finally:
            goes_on.join()

    for ask in (
        lambda: client.get(id, wait=True, timeout=0),
        lambda: client.get_name("it", wait=True, timeout=0),
        lambda: client.get(name="it", wait=True, timeout=0.001),
    ):
        assert any(is_found(ask) for _ in range(20))


def test_closing_does_not_wait_for_a_server_that_stands_still(server_process):
    client = connect(server_process.path)
    id = client.put(np.arange(30_000))
    found, waiting = client.get(id), []

    def wait(call):
        try:
            call()
        except (ValueError, OSError) as error:
            waiting.append(error)

    calls = (lambda: client.exists(id), lambda: client.get_name("nobody", wait=True))
    stopped(server_process)
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    client.close()
    assert found.shape == (30_000,)
    del found  # the connection ends with the last lease
    for thread in threads:
        thread.join(30)
    assert [type(error) for error in waiting] == [ValueError] * 2, waiting
    server_process.process.send_signal(signal.SIGCONT)


def test_what_a_server_does_not_answer_is_given_up_without_waiting(server_process):
    client = connect(server_process.path)
    builder, found = client.create(100_000), client.get(client.put(np.zeros(100_000)))
    stopped(server_process)
    del builder, found
    server_process.process.send_signal(signal.SIGCONT)
    wait_until(lambda: client.statistics()["unsealed"] == client.statistics()["leases"] == 0)


def test_a_handler_may_use_the_client_that_it_interrupts(server_process, ctrl_c):
    client = connect(server_process.path)
    id = client.put(np.zeros(3))
    found = []
    signal.signal(signal.SIGUSR1, lambda *_: found.append(client.exists(id)))
    try:
        stopped(server_process)
        pid = server_process.process.pid

        def go_on():
            os.kill(os.getpid(), signal.SIGUSR1)
            threading.Event().wait(0.2)
            os.kill(pid, signal.SIGCONT)

        timer = threading.Timer(0.15, go_on)
        timer.start()
        client.delete(id)
        timer.join()
        wait_until(lambda: found)
        assert found == [False]
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def test_a_handler_makes_calls_while_its_threads_own_call_ends(client, monkeypatch):
    monkeypatch.setattr(patience, "SLICE", 60)  # one request, which the handler finds in flight
    builder = client.create(5)
    builder.buffer.fill(7)
    own = np.asarray(builder.buffer)  # which keeps the maker's lease
    handled = []

    def handle(_, frame):
        if frame.f_code.co_name != "look":
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        builder.seal()  # which ends the call below
        wait_until(lambda: client.statistics()["leases"] == 2)
        handled.append(client.put(np.arange(4)))

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        found = client.get(builder.id, wait=True, timeout=60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found.get().tolist() == [7] * 5
    assert len(handled) == 1
    del own


def test_a_server_ends_while_clients_wait(tmp_path):
    server = Server(str(tmp_path / "store" / "socket"))
    client, errors = connect(server.path), []

    def wait(call):
        try:
            call()
        except ConnectionError as error:
            errors.append(error)

    calls = (
        lambda: client.get_name("nobody", wait=True),
        lambda: client.get("0" * 32, wait=True),
        lambda: next(client.events()),
    )
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.statistics()["connections"] >= 4)
    server.close()
    for thread in threads:
        thread.join(30)
    assert len(errors) == 3


def test_a_handler_that_forks_during_a_call(client):
    """The child is told that the call is its parent's, and not of memory that it never had."""
    reader, writer = os.pipe()
    parent = os.getpid()
    children = []

    def fork(*_):
        if pid := os.fork():
            children.append(pid)

    before = signal.signal(signal.SIGALRM, fork)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    told = None
    try:
        client.get_name("nobody", wait=True, timeout=0.6)
    except Exception as error:
        told = error
    if os.getpid() != parent:
        os.write(writer, f"{type(told).__name__}: {told}".encode())
        os._exit(0)
    signal.signal(signal.SIGALRM, before)
    assert isinstance(told, StoreTimeout)
    os.close(writer)
    with open(reader) as child:
        assert child.read().startswith("ForkError: this call is of the parent process")
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0]


def test_a_client_that_is_closed_while_it_connects(server, client, monkeypatch):
    """It has no connection afterwards, and makes no more calls."""
    connects = client_module._native.store_connect

    def connect_and_close(*arguments):
        connects(*arguments)
        client.close()

    client._connection = None  # as in a forked child
    monkeypatch.setattr(client_module._native, "store_connect", connect_and_close)
    for _ in range(2):
        with pytest.raises(ValueError, match="the client was closed"):
            client.statistics()
    monkeypatch.undo()
    wait_until(lambda: server.statistics()["connections"] == 0)
