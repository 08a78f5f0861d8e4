"""Devices as objects: what is taken for one, and what they ask of the core."""

import os

import numpy as np
import pytest

import hamr
from tests.support.recorded_core import NEW, foreign

# Devices.


def test_device_blocks_nest(core):
    one = hamr.device(1)
    assert (one.index, [5, 6][one], repr(one)) == (1, 6, "hamr.device(1)")
    with one as entered:
        assert entered is one
        assert hamr.current_device() == hamr.device().index == 1
        with hamr.device(2), one, one:
            assert hamr.current_device() == 1
        assert hamr.current_device() == 1
    assert hamr.current_device() == 0
    assert hamr.device(1) == one != hamr.device(2)
    with pytest.raises(ZeroDivisionError), one:
        1 / 0  # noqa: B018
    assert hamr.current_device() == 0
    with pytest.raises(RuntimeError, match="thread"):
        one.__exit__()


def test_a_device_that_is_not_there(core):
    with pytest.raises(ValueError, match=r"3.*0 \.\.\. 2"):
        hamr.device(3)


def test_upstreams_names(core):
    with hamr.activate_cuda_device(2) as two:
        assert isinstance(two, hamr.device)
        assert hamr.get_active_cuda_device() == 2
    hamr.set_active_cuda_device(1)
    assert hamr.get_active_cuda_device() == 1
    assert hamr.get_cuda_device(4096) == 2
    assert hamr.access_cuda_peer.enable(0, 1) is True
    assert core.calls[-4:] == [
        ("CanAccess", "cuda", 0, 1), ("EnablePeer", "cuda", 0, 1),
        ("CanAccess", "cuda", 1, 0), ("EnablePeer", "cuda", 1, 0),
    ]  # fmt: skip
    del core.calls[:]
    assert hamr.access_cuda_peer.enable(1, 0, False) is True
    assert [c for c in core.calls if c[0] == "EnablePeer"] == [("EnablePeer", "cuda", 1, 0)]
    assert hamr.access_cuda_peer.enable(0, 2) is False


def test_peer_access(core):
    assert hamr.peer_access(0, 1) is True
    assert hamr.peer_access(hamr.device(1), 0) is True
    assert hamr.peer_access(2, 2) is True
    assert hamr.peer_access(0, 2) is False
    assert ("EnablePeer", "cuda", 0, 2) not in core.calls


def test_what_is_known_of_a_device(core):
    info = hamr.memory_info(1)
    assert (info.free, info.total, tuple(info)) == (10, 30, (10, 30))
    assert repr(info) == "MemoryInfo(free=10, total=30)"
    assert core.calls == [("MemoryInfo", "cuda", 1)]
    hamr.memory_info()
    assert core.calls[-1] == ("MemoryInfo", "cuda", -1)
    assert hamr.device_properties(hamr.device(2)) == {"name": "Tester", "driver": "13.0"}
    assert core.calls[-1] == ("Describe", "cuda", 2)


def cuda_array(data):
    return foreign("Array", __cuda_array_interface__={"data": data})


def test_whose_memory_an_object_is(core):
    assert hamr.device_of(4096) == hamr.device_of(np.uint64(4096)) == 2
    assert hamr.device_of(cuda_array((4096, False))) == 2
    for host in (hamr.Buffer(3), hamr.Buffer(3).pointer(), np.zeros(3), b"abc", memoryview(b"x")):
        assert hamr.device_of(host) == -1
    core.current = 1
    assert hamr.device_of(hamr.Stream()) == 1
    assert hamr.device_of(hamr.Stream(device=2)) == 2
    assert hamr.device_of(hamr.Stream(9).record()) == 1
    assert hamr.device_of(foreign(ptr=9, device_id=0)) == 0


@pytest.mark.parametrize(
    ("x", "error"),
    [
        (None, TypeError), ("x", TypeError), (1.5, TypeError), (True, TypeError), ([1], TypeError),
        (hamr.Buffer, TypeError), (object(), TypeError), (-1, ValueError), (2**64, ValueError),
        (cuda_array(None), TypeError), (cuda_array((True, False)), TypeError),
    ],
)  # fmt: skip
def test_what_is_nowhere(core, x, error):
    with pytest.raises(error, match="x is"):
        hamr.device_of(x)


# Without a driver, and after a fork.

CUDA = hamr.backends().get("cuda", {"available": False})["available"]


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
@pytest.mark.parametrize(
    "use",
    [
        lambda: hamr.Stream(device=0), lambda: hamr.Stream(2), lambda: hamr.Stream().idle,
        lambda: hamr.Stream().synchronize(), hamr.Event, hamr.current_device, hamr.device,
        lambda: hamr.device(0), lambda: hamr.peer_access(0, 0), hamr.memory_info,
        hamr.device_properties, hamr.get_active_cuda_device, lambda: hamr.Stream(2**63).record(),
        lambda: hamr.Stream(5).wait(foreign("Event", ptr=5)),
    ],
)  # fmt: skip
def test_without_a_driver(use):
    with pytest.raises(hamr.BackendUnavailable, match="cuda") as caught:
        use()
    assert "libcuda.so.1" in caught.value.tried


@pytest.mark.skipif(CUDA, reason="there is a CUDA driver here")
def test_without_a_driver_all_memory_is_the_hosts():
    assert hamr.device_of(hamr.Buffer(3).ptr) == -1


def test_streams_and_events_of_a_parent(core):
    stream, shared, event = hamr.Stream(device=1), hamr.Stream(9), hamr.Stream(9).record()
    block = hamr.device(1)
    block.__enter__()
    uses = {
        "idle": lambda: stream.idle,
        "record": stream.record,
        "synchronize": shared.synchronize,
        "wait": lambda: hamr.Stream().wait(event),
        "done": lambda: event.done,
        "event wait": event.wait,
        "buffer": lambda: hamr.Buffer(3, stream=stream),
        "set_stream": lambda: hamr.Buffer(3).set_stream(shared),
        "protocol": stream.__cuda_stream__,
        "wrap": lambda: hamr.Stream(stream),
        "await": lambda: stream.__await__(),
    }
    child = os.fork()
    if child == 0:
        status = 1
        try:
            del core.calls[:]
            works = []
            for name, use in uses.items():
                try:
                    use()
                    works.append(name)
                except hamr.ForkError:
                    pass
            assert works == [], works
            assert int(stream) == NEW + 1
            assert hamr.Stream() == hamr.Stream()
            block.__exit__()
            assert core.calls == []
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    block.__exit__()
