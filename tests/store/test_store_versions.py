"""Objects that replace others under a name, and who watches the name."""

import asyncio
import concurrent.futures
import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from safetensors.numpy import save_file

from hamr import _native
from hamr.store import NameTaken, ObjectNotFound, StoreFull, StoreLost, Watch, connect
from tests.store.test_store_interrupted_anywhere import sweep
from tests.store.test_store_undone import interrupted
from tests.store.versions import LAST, SIZE, number_of, put, version
from tests.support.paths import PATHS
from tests.support.processes import scaled, wait_until


def figures(client):
    told = client.statistics()
    return told["objects"], told["memory"]["host"]["used"]


def test_a_version_replaces_another(client):
    first = put(client, 1)
    one = figures(client)
    readers = client.get_group("weights")
    second = put(client, 2)
    assert client.get_name("weights") == second
    assert not client.exists(first)
    assert figures(client) == (1, 2 * one[1])
    assert number_of(readers) == 1
    assert number_of(client.get_group("weights")) == 2
    del readers
    gc.collect()
    wait_until(lambda: figures(client) == one)
    with pytest.raises(NameTaken):
        client.put_group(version(3), name="weights")
    assert figures(client) == one


def test_all_ways_to_replace(client, tmp_path):
    save_file({"w": np.ones(3)}, tmp_path / "w.safetensors")
    client.put(np.ones(3), name="weights", replace=True)
    for replacing in (
        lambda: client.put(np.ones(3), name="weights", replace=True),
        lambda: client.put(np.ones(70_000), name="weights", replace=True, evictable=True),
        lambda: put(client, 1),
        lambda: client.load_group(tmp_path / "w.safetensors", name="weights", replace=True),
        lambda: made_and_named(client),
    ):
        before = client.get_name("weights")
        id = replacing()
        assert client.get_name("weights") == id
        assert not client.exists(before)
    old = client.get_name("weights")
    client.put_name("weights", client.put(np.ones(3)), replace=True)
    assert client.exists(old)  # put_name leaves it


def made_and_named(client):
    with client.create(3) as builder:
        builder.buffer.fill(1)
    client.replace("weights", builder.id)
    return builder.id


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"replace": True}, TypeError, "name="),
        ({"replace": 1, "name": "a"}, TypeError, "replace is 1"),
        ({"replace": True, "name": "a", "session": 1}, TypeError, "session is 1"),
        ({"replace": True, "name": ""}, ValueError, "name is ''"),
    ],
)
def test_bad_arguments(client, arguments, error, words):
    for call in (client.put, lambda array, **more: client.put_group([array], **more)):
        with pytest.raises(error, match=words):
            call(np.ones(3), **arguments)
    assert client.statistics()["objects"] == 0


def test_the_old_version_stays_where_there_is_no_room(client):
    put(client, 1)
    before = figures(client)
    with pytest.raises(StoreFull):
        client.put(np.zeros(64 << 20, "u1"), name="weights", replace=True)
    assert number_of(client.get_group("weights")) == 1
    assert figures(client) == before


@pytest.mark.parametrize("session", [True, False])
def test_a_version_and_its_session(server, client, session):
    with connect(server.path) as other:
        id = put(other, 1, session=session)
    wait_until(lambda: client.exists(id) is not session)
    wait_until(lambda: client.statistics()["connections"] == 1)
    assert client.exists(id) is not session


def test_ctrl_c_at_each_step(client):
    """One version has the name, and there is no other object."""
    replace = lambda: client.put(np.ones(SIZE), name="weights", replace=True)  # noqa: E731
    replace()
    wanted = figures(client)

    def check(step):
        wait_until(lambda: figures(client) == wanted)
        assert client.exists(client.get_name("weights"))

    sweep(replace, check)


@pytest.mark.parametrize("done", [True, False])
def test_ctrl_c_while_the_name_is_given(client, ctrl_c, monkeypatch, done):
    put(client, 1)
    wanted = figures(client)
    call = interrupted(_native.store_replace if done else lambda *arguments: None)
    monkeypatch.setattr(_native, "store_replace", call)
    with pytest.raises(KeyboardInterrupt):
        put(client, 2)
    wait_until(lambda: figures(client) == wanted)
    assert number_of(client.get_group("weights")) == (2 if done else 1)


def test_a_watch(client):
    with client.watch("weights") as watch:
        assert isinstance(watch, Watch)
        assert "'weights'" in repr(watch)
        assert watch.take() is None
        assert watch.take(0.02) is None
        ids = [put(client, 1)]
        assert next(watch) == ids[0]
        assert watch.take(0.02) is None
        ids += [put(client, 2), put(client, 3)]
        told = watch.take(10)
        assert told in ids[1:]
        assert told == ids[2] or watch.take(10) == ids[2]
        client.drop_name("weights")
        client.put_name("weights", ids[2])
        assert watch.take(0.02) is None
        timer = threading.Timer(0.05, put, (client, 4))
        timer.start()
        assert next(watch) == client.get_name("weights")
        timer.join()
        threading.Timer(0.05, watch.close).start()
        assert list(watch) == []
    with pytest.raises(ValueError, match="closed"):
        watch.take()
    assert "closed" in repr(watch)
    with pytest.raises(ValueError, match="name is ''"):
        client.watch("")
    with pytest.raises(TypeError):
        client.watch(7)
    with pytest.raises(TypeError, match="timeout"), client.watch("weights") as watch:
        watch.take("soon")
    wait_until(lambda: client.statistics()["connections"] == 1)


def test_ctrl_c_takes_an_id_from_a_watch(client, ctrl_c, monkeypatch):
    """The next call has it."""
    id = put(client, 1)
    with client.watch("weights") as watch:
        with monkeypatch.context() as patched:
            patched.setattr(_native, "store_next_name", interrupted(_native.store_next_name))
            with pytest.raises(KeyboardInterrupt):
                next(watch)
        assert watch.take(10) == id


def test_a_loop_of_events(client):
    async def told():
        watch, seen, threads = client.watch("weights"), [], threading.active_count()

        async def collect():
            async for id in watch:
                seen.append(number_of(client.get_group(id)))

        waiting = asyncio.ensure_future(watch)
        await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert threading.active_count() == threads
        first = put(client, 1)
        assert await watch == first
        collecting = asyncio.ensure_future(collect())
        for n in range(2, 6):
            put(client, n)
            while seen[-1:] != [n]:
                await asyncio.sleep(0.002)
            collecting.cancel()
            await asyncio.wait([collecting])
            collecting = asyncio.ensure_future(collect())
        await asyncio.sleep(0.02)
        assert threading.active_count() == threads
        watch.close()
        await asyncio.wait_for(collecting, 10)
        with pytest.raises(ValueError, match="closed"):
            await watch
        return seen

    before = len(os.listdir("/proc/self/fd"))
    assert asyncio.run(told()) == [2, 3, 4, 5]
    client.delete(client.get_name("weights"))
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_a_thread_takes_what_a_task_waits_for(client):
    """The task waits for the next one then."""

    async def told():
        with client.watch("weights") as watch:
            waiting = asyncio.ensure_future(watch)
            await asyncio.sleep(0.02)
            first = put(client, 1)
            with concurrent.futures.ThreadPoolExecutor(1) as thread:  # the loop stands still
                assert thread.submit(watch.take, 10).result() == first
            await asyncio.sleep(0.02)
            assert not waiting.done()
            second = put(client, 2)
            assert await asyncio.wait_for(waiting, 10) == second

    asyncio.run(told())


def test_a_watch_outlasts_the_server(server_process):
    client = connect(server_process.path)
    watch = client.watch("weights")
    kept = [client.get(put(client, 1))]
    assert next(watch) == client.get_name("weights")
    server_process.end(signal.SIGKILL)
    with pytest.raises(StoreLost):
        watch.take(10)
    with pytest.raises(StoreLost):
        asyncio.run(asyncio.wait_for(watch, 10))
    server_process.start()
    with contextlib.suppress(StoreLost):
        client.statistics()
    kept.append(client.get(put(client, 2)))
    assert next(watch) == client.get_name("weights")
    assert client.statistics()["objects"] == 1
    server_process.end(signal.SIGKILL)
    timer = threading.Timer(0.1, server_process.start)
    timer.start()
    assert asyncio.run(told_after(timer, client, watch)) == client.get_name("weights")
    watch.close()


async def told_after(restart, client, watch):
    """What a watch tells that waits while another server starts."""
    waiting = asyncio.ensure_future(watch)
    await asyncio.sleep(0.02)
    waiting.cancel()
    await asyncio.wait([waiting])
    waiting = asyncio.ensure_future(watch)
    while restart.is_alive():
        await asyncio.sleep(0.01)
    with contextlib.suppress(StoreLost):
        client.statistics()
    put(client, 3)
    return await asyncio.wait_for(waiting, 10)


def test_a_forked_child_watches(client):
    watch = client.watch("weights")
    first = put(client, 1)
    assert next(watch) == first
    if (child := os.fork()) == 0:
        status = 1
        with contextlib.suppress(BaseException):
            status = int(watch.take(10) in (None, first))
        os._exit(status)
    second = put(client, 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert watch.take(10) == second


@pytest.fixture
def run():
    """Another process: a function of tests.store.versions."""
    processes = []

    def start(what, path, *arguments, crash_at=""):
        command = [sys.executable, "-m", "tests.store.versions", what, path, *map(str, arguments)]
        env = {**os.environ, **PATHS, "HAMR_STORE_CRASH_AT": crash_at}
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


STEPS = ("client-created", "client-mapped", "client-sealing", "client-sealed")


def test_a_writer_dies_at_any_step(server, client, run):
    """There is one version, the old one or the new one, and nothing else."""
    put(client, 0)
    wanted = figures(client)
    for step in STEPS:
        writer = run("write", server.path, 1, 10_000, crash_at=f"{step}:1")
        assert writer.wait(60) == -signal.SIGKILL, step
        wait_until(lambda: client.statistics()["connections"] == 1)
        wait_until(lambda: figures(client) == wanted)
        number_of(client.get_group("weights"))


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_writers_readers_and_servers_die(server_process, run, seed):
    """Readers see whole versions, none older than one before, and the last one in the end."""
    choose, path = random.Random(seed), server_process.path
    readers = [run("read", path) for _ in range(2)]
    at = 1
    for _ in range(4):
        writer = run("write", path, at, at + 400)
        for _ in range(choose.randrange(1, 30)):
            at = int(writer.stdout.readline())
        victim = choose.randrange(4)
        if victim < 2:
            readers[victim].kill()
            assert "wrong" not in readers[victim].communicate()[0]
            readers[victim] = run("read", path)
        elif victim == 2:
            server_process.end(signal.SIGKILL)
            server_process.start()
            for _ in range(3):
                at = int(writer.stdout.readline())
        writer.kill()
        rest = writer.communicate()[0].splitlines()
        at = int(rest[-1] if rest and rest[-1].isdigit() else at) + 2
    with connect(path) as client:
        put(client, LAST)
        for reader in readers:
            output = reader.communicate(timeout=60)[0]
            assert (reader.returncode, output.split()[-1]) == (0, "last"), output
            assert "wrong" not in output
        wait_until(lambda: client.statistics()["connections"] == 1)
        wait_until(lambda: client.statistics()["leases"] == 0)
        assert number_of(client.get_group("weights")) == LAST
        one = figures(client)
        client.delete(client.get_name("weights"))
        with pytest.raises(ObjectNotFound):
            client.get_name("weights")
        assert one[0] == 1
        wait_until(lambda: figures(client) == (0, 0))
