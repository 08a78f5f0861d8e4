"""Ways by which another process gets memory of a GPU: hamr's, other libraries', and the driver's.

Each is called with a driver, how many bytes, how many rounds, and how many are made in each round
and then handed over one right after the other. It returns the microseconds of each. The other
process looks at the bytes, and lets go of them, at the end of a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import bare_hand_over, bare_object
from .children import Child, answer, serving, told
from .driver import Driver
from .groups import MIB
from .share import FILL, check, itself, took as shared_by


def by_handle(
    allocator: str, driver: Driver, nbytes: int, rounds: int, together: int
) -> list[float]:
    """By a handle over a socket."""
    return shared_by(nbytes, rounds, allocator, together, HAMR_CUDA_POOL_SHARED="1")


def by_the_driver(driver: Driver, nbytes: int, rounds: int, together: int) -> list[float]:
    """By the driver and one message alone."""
    with bare_hand_over.calls() as (_, library):
        return bare_hand_over.took(nbytes, rounds, library, together)


def by_the_driver_and_a_server(
    driver: Driver, nbytes: int, rounds: int, together: int
) -> list[float]:
    """By the driver and five messages alone."""
    return bare_object.took(nbytes, rounds, together)


def by_store(
    with_cupy: bool, driver: Driver, nbytes: int, rounds: int, together: int
) -> list[float]:
    """By objects of a store, whose ids go by a pipe."""
    from hamr.store import connect

    took = []
    with serving(MIB) as path, connect(path) as client:
        child = Child.of("hand_over_ways.child_get", path, int(with_cupy), together)
        try:
            child.line()
            for _ in range(rounds):
                builders = [client.create(nbytes, "u1", device=0) for _ in range(together)]
                for builder in builders:
                    builder.buffer.fill(FILL)
                driver.synchronize()
                for builder in builders:
                    start = time.perf_counter_ns()
                    child.tell(builder.seal())
                    took.append((int(child.line()) - start) / 1e3)
                child.line()  # it has let go
                for builder in builders:
                    client.delete(builder.id)
        finally:
            child.end()
    return took


def child_get(path: str, with_cupy: str, together: str) -> None:
    """Have each object whose id it is told, and answer when."""
    from hamr.store import connect

    asarray: Callable[[Any], Any] = _cupy().asarray if int(with_cupy) else itself
    with connect(path) as client:
        answer("ready")
        found: list[Any] = []
        for id in told():
            found.append(asarray(client.get(id)))
            answer(time.perf_counter_ns())
            if len(found) == int(together):
                _check_all(found)
                answer("let go")


def _check_all(found: list[Any]) -> None:
    """Look at arrays, and let go of them."""
    for each in found:
        check(each)
    del each
    found.clear()


def _cupy() -> Any:
    cupy = import_module("cupy")
    cupy.zeros(1)
    return cupy


def by_ipc(cupy: Any, driver: Driver, nbytes: int, rounds: int, together: int) -> list[float]:
    """By CUDA's handles, with CuPy's functions."""
    took = []
    child = Child.of("hand_over_ways.child_ipc", nbytes, together)
    try:
        child.line()
        for _ in range(rounds):
            # None of the pool's, which come in parts.
            made = [cupy.cuda.Memory(nbytes) for _ in range(together)]
            for memory in made:
                cupy.cuda.runtime.memset(memory.ptr, FILL, nbytes)
            driver.synchronize()
            for memory in made:
                start = time.perf_counter_ns()
                child.tell(cupy.cuda.runtime.ipcGetMemHandle(memory.ptr).hex())
                took.append((int(child.line()) - start) / 1e3)
            child.line()  # it has closed the handles
            del made, memory
    finally:
        child.end()
    return took


def child_ipc(nbytes: str, together: str) -> None:
    """Open each handle that it is told, and answer when it had the array."""
    cupy, size = _cupy(), int(nbytes)
    cuda = cupy.cuda
    answer("ready")
    found: list[Any] = []
    opened: list[int] = []
    for text in told():
        opened.append(cuda.runtime.ipcOpenMemHandle(bytes.fromhex(text)))
        memory = cuda.MemoryPointer(cuda.UnownedMemory(opened[-1], size, None), 0)
        found.append(cupy.ndarray((size,), "u1", memory))
        answer(time.perf_counter_ns())
        if len(found) == int(together):
            _check_all(found)
            while opened:
                cuda.runtime.ipcCloseMemHandle(opened.pop())
            answer("closed")


def by_queue(torch: Any, driver: Driver, nbytes: int, rounds: int, together: int) -> list[float]:
    """By torch's queue of tensors."""
    context = import_module("torch.multiprocessing").get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    arguments = tensors, answers, together
    child = context.Process(target=child_queue, args=arguments, daemon=True)
    took = []
    child.start()
    try:
        answers.get(timeout=120)
        for _ in range(rounds):
            made = [
                torch.full((nbytes,), FILL, dtype=torch.uint8, device="cuda")
                for _ in range(together)
            ]
            driver.synchronize()
            for tensor in made:
                start = time.perf_counter_ns()
                tensors.put(tensor)
                took.append((answers.get(timeout=120) - start) / 1e3)
            answers.get(timeout=120)  # it has let go of the tensors
            del made, tensor
        tensors.put(None)
        child.join(30)
    finally:
        child.kill()
        child.join()
    return took


def child_queue(tensors: Any, answers: Any, together: int) -> None:
    """Take tensors out of a queue until None comes, and answer when."""
    import_module("torch").zeros(1, device="cuda")
    answers.put("ready")
    found: list[Any] = []
    while (tensor := tensors.get()) is not None:
        found.append(tensor)
        del tensor
        answers.put(time.perf_counter_ns())
        if len(found) == together:
            _check_all(found)
            answers.put("let go")
