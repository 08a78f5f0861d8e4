"""How blocks of hamr.pausable end, and what becomes of names that have no memory."""

from __future__ import annotations

import threading

import pytest

import hamr
from tests.cuda.test_cuda_pausing import made
from tests.support.contents import on_host


@pytest.fixture
def name(request):
    return request.node.name


def test_a_generator_that_ends_inside_another_block(name):
    def buffers():
        with hamr.pausable(name):
            while True:
                yield hamr.Buffer(10, "f4", "cuda_vmm", fill=1)

    inner = name + " inner"
    made_inside = buffers()
    first = next(made_inside)
    with hamr.pausable(inner):
        made_inside.close()
        second = hamr.Buffer(10, "f4", "cuda_vmm", fill=2)
    third = hamr.Buffer(10, "f4", "cuda_vmm", fill=3)
    hamr.pause(name, keep="host")
    assert [on_host(second)[0], on_host(third)[0]] == [2, 3]
    with pytest.raises(hamr.PausedMemory):
        on_host(first)
    hamr.pause(inner, keep="host")
    with pytest.raises(hamr.PausedMemory):
        on_host(second)
    assert on_host(third)[0] == 3
    hamr.resume(inner)
    hamr.resume(name)


def test_a_block_that_another_thread_leaves(name):
    block, wrong = hamr.pausable(name), []

    def leave() -> None:
        with pytest.raises(RuntimeError, match="is left by a thread"):
            block.__exit__(None, None, None)
        wrong.append(False)

    with block:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    assert wrong == [False]


def test_a_name_without_memory(name):
    with hamr.pausable(name):
        pass
    assert name not in hamr.pausable_memory()
    hamr.pause(name, keep="host")
    assert hamr.pausable_memory()[name] == {
        "bytes": {},
        "paused": True,
        "keep": "host",
        "locked": 0,
    }
    with pytest.raises(hamr.PausedMemory):
        made(name)
    hamr.resume(name)
    assert name not in hamr.pausable_memory()
    assert on_host(made(name))[0] == 1
