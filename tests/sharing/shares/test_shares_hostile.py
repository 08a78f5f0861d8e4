"""What comes over a socket and is no handle: refused, and nothing is left open."""

import array
import contextlib
import os
import random
import socket
import threading

import pytest

import hamr
from tests.support.processes import scaled
from tests.support.sharers import Process, open_files, total


@pytest.fixture
def handle():
    with hamr.Buffer(100, "f4", "shared", fill=1).share() as handle:
        opened(handle.to_bytes(), handle.descriptors)  # whose first makes what waits for files
        yield handle


def rights(numbers):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", numbers))] if numbers else []


def opened(data, descriptors, kind=socket.SOCK_SEQPACKET):
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with near, far:
        near.sendmsg([data], rights(descriptors))
        near.shutdown(socket.SHUT_WR)
        return hamr.open_shared(far).get()


@contextlib.contextmanager
def nothing_is_left():
    before = open_files()
    yield
    assert open_files() == before


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
@pytest.mark.parametrize("count", [0, 2, 3, 10])
def test_other_numbers_of_descriptors(handle, kind, count):
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with near, far, nothing_is_left():
        near.sendmsg([handle.to_bytes()], rights(handle.descriptors * count))
        with pytest.raises(ValueError, match="descriptors"):
            hamr.open_shared(far)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_frames_that_lie(handle, kind):
    good, chance = handle.to_bytes(), random.Random(15)
    with nothing_is_left():
        for _ in range(scaled(1000, 100)):
            bad = bytearray(good)
            for _ in range(chance.randint(1, 3)):
                bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            bad = bad[: chance.choice([len(bad), chance.randrange(len(bad)), 16, 15, 1])]
            with contextlib.suppress(ValueError, TypeError, EOFError, OSError, hamr.Error):
                opened(bad, handle.descriptors, kind)


def test_what_is_no_handle_at_all(handle):
    near, far = socket.socketpair()
    with near, far:
        near.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with pytest.raises(ValueError, match="no handle"):
            hamr.open_shared(far)
    for source in (None, 5, "text", object()):
        with pytest.raises(TypeError, match="accepted are"):
            hamr.open_shared(source)
    with socket.socket() as internet, pytest.raises(ValueError, match="UNIX socket"):
        hamr.open_shared(internet)
    with pytest.raises(TypeError, match="to_bytes"):
        hamr.open_shared(handle, handle.descriptors)
    with pytest.raises(ValueError, match="descriptors"):
        hamr.open_shared(handle.to_bytes())
    with pytest.raises(TypeError):
        hamr.open_shared(handle.to_bytes(), ["1"])
    for number, words in ((-1, "descriptor"), (1 << 20, "descriptor")):
        with pytest.raises((ValueError, OSError), match=words):
            hamr.open_shared(handle.to_bytes(), [number])
    descriptor = os.open("/dev/zero", os.O_RDWR)
    with pytest.raises(ValueError, match="not of shared memory"):
        hamr.open_shared(handle.to_bytes(), [descriptor])
    os.close(descriptor)


def test_memory_that_others_could_cut_is_refused(handle):
    descriptor = os.memfd_create("cut", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.truncate(descriptor, 1 << 20)
    with pytest.raises(ValueError, match="F_SEAL_SHRINK"):
        hamr.open_shared(handle.to_bytes(), [descriptor])
    os.close(descriptor)


def test_a_handle_that_comes_in_pieces(handle):
    near, far = socket.socketpair()
    frame = handle.to_bytes()

    def send():
        near.sendmsg([frame[:1]], rights(handle.descriptors))
        for at in range(1, len(frame)):
            near.send(frame[at : at + 1])

    with near, far:
        sender = threading.Thread(target=send)
        sender.start()
        assert total(hamr.open_shared(far)) == 100
        sender.join()


def test_threads_share_and_close_at_once():
    source = hamr.Buffer(100, "f4", "shared", fill=1)
    wrong = []

    def work():
        for _ in range(scaled(300, 30)):
            handle = source.share()
            closer = threading.Thread(target=handle.close)
            closer.start()
            with contextlib.suppress(ValueError):  # it was closed
                wrong.extend([total(hamr.open_shared(handle))] * 1)
            closer.join()

    with nothing_is_left():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert set(wrong) <= {100.0}


def test_a_random_walk_beside_a_plain_model():
    """Makes, shares, writes, drops and kills; what each process sees is what the model has."""
    chance = random.Random(16)
    for _ in range(scaled(8)):
        processes = [Process() for _ in range(3)]
        model: list[dict] = [
            {} for _ in processes
        ]  # of each process, a list that all who share have
        try:
            for step in range(25):
                me = chance.randrange(len(processes))
                held, known = processes[me], model[me]
                word = chance.choice(
                    ["make", "share", "share", "fill", "fill", "read", "drop", "kill"]
                )
                name = chance.choice(list(known)) if known else ""
                if word == "make" or not known:
                    name, allocator = f"n{step}", chance.choice(["shared", "malloc"])
                    held.make(name, (chance.randint(1, 2000),), "i4", allocator, None, step)
                    known[name] = [step]
                elif word == "share":
                    to = chance.choice([i for i in range(len(processes)) if i != me])
                    there = f"s{step}"
                    held.part(there, name, ...)
                    known[there] = known[name]
                    copied = held.hands(processes[to], there)
                    model[to][there] = [*known[name]] if copied else known[name]
                elif word == "fill":
                    held.fill(name, step)
                    known[name][0] = step
                elif word == "read":
                    assert set(held.values(name)) == set(known[name])
                elif word == "drop":
                    held.drop(name)
                    del known[name]
                elif chance.random() < 0.5:
                    held.kill()
                    processes[me].connection.close()
                    processes[me], model[me] = Process(), {}
            for held, known in zip(processes, model, strict=True):
                for name, value in known.items():
                    assert set(held.values(name)) == set(value)
        finally:
            for each in processes:
                each.__exit__()
