"""How soon another process has an array of a GPU's memory: by the store, and by others."""

from __future__ import annotations

import statistics
import time
from functools import partial
from importlib import import_module

from . import bare_hand_over, bare_object, spilling
from .children import Child, answer, serving, told
from .groups import MIB, Rows, size_text
from .hand_over_parts import by_handle, by_store
from .share import FILL, check
from .share import took as shared_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .driver import Driver
    from .groups import Libraries

#: Microseconds from the sender's call to the receiver's array, by size.
LIMITS = {MIB: 60.0, 64 * MIB: 250.0}
_ROUNDS, _QUICK_ROUNDS = 30, 2
_PART_ROUNDS = 100
_SPILL_ROUNDS = 10
#: The least that a hand-over of a pool's memory takes.
BARE = "the driver and one message alone: cuMemPoolExportPointer, sendmsg, cuMemPoolImportPointer"
#: The least that a hand-over of an object of a store takes.
BARE_OBJECT = "the driver and five messages alone: cuMemSetAccess, a server asked twice, cuMemMap"


def hand_over(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """Memory of 1 MiB and 64 MiB, new each time, to a process that waits for it."""
    for nbytes in _sizes(lib):
        title = f"hand {size_text(nbytes)} of CUDA over to another process"
        yield Rows(title, "us", partial(_rows, lib, driver, nbytes))
    yield from _bare(lib)
    yield from _in_parts(lib, driver)
    for nbytes in _sizes(lib)[-1:]:
        title = f"{size_text(nbytes)} of CUDA, for which a store has no room, to a file and back"
        rounds = _rounds(lib, _SPILL_ROUNDS)
        yield Rows(title, "us", partial(_tried, lib, spilling.rows, lib, nbytes, rounds))


def _bare(lib: Libraries) -> Iterator[Rows]:
    """What the driver and the kernel take by themselves, whoever calls them."""
    nbytes, rounds = min(MIB, lib.settings.largest), _rounds(lib, _PART_ROUNDS)
    title = f"the driver and one message alone, {size_text(nbytes)} of a pool"
    yield Rows(title, "us", partial(_tried, lib, bare_hand_over.rows, nbytes, rounds))
    for nbytes in _sizes(lib):
        title = f"the driver and five messages alone, an object of {size_text(nbytes)}"
        yield Rows(title, "us", partial(_tried, lib, bare_object.rows, nbytes, rounds))


def _sizes(lib: Libraries) -> list[int]:
    return [n for n in LIMITS if n <= lib.settings.largest] or [lib.settings.largest]


def _rounds(lib: Libraries, usual: int) -> int:
    return _QUICK_ROUNDS if lib.settings.quick else usual


def _in_parts(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """The steps of some of it, so that one sees where the time goes."""
    rounds = _rounds(lib, _PART_ROUNDS)
    for nbytes in _sizes(lib):
        size = size_text(nbytes)
        for allocator in ("cuda_async", "cuda"):
            title = f"the steps of a handle of {size} of {allocator}"
            yield Rows(title, "us", partial(_tried, lib, by_handle, nbytes, rounds, allocator))
        title = f"the steps of an object of {size} of the store"
        steps = partial(_tried, lib, by_store, nbytes, rounds, lambda: driver.synchronize())
        yield Rows(title, "us", steps)


def _tried(lib: Libraries, way: Callable[..., Any], *arguments: object) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = way(*arguments)
    except Exception as error:
        rows = [{"operation": "all steps", "error": f"{type(error).__name__}: {error}"[:200]}]
    finally:
        lib.trim()
    return rows


def _rows(lib: Libraries, driver: Driver, nbytes: int) -> list[dict[str, Any]]:
    rounds = _rounds(lib, _ROUNDS)
    by_cupy = "cp.asarray(client.get(id))" if lib.cupy else "client.get(id)"
    store = partial(_by_store, bool(lib.cupy))
    ways: list[tuple[str, Callable[..., list[float]]]] = [(f"hamr: seal, pipe, {by_cupy}", store)]
    opened = "cp.asarray(open_shared(socket))" if lib.cupy else "open_shared(socket)"
    pooled = f"hamr: share, send, {opened}, of cuda_async's pool"
    ways.append((pooled, partial(_by_handle, "cuda_async")))
    ways.append((f"hamr: share, send, {opened}, of cuda", partial(_by_handle, "cuda")))
    if lib.cupy:
        ways.append(("CuPy: ipcGetMemHandle, pipe, ipcOpenMemHandle", partial(_by_ipc, lib.cupy)))
    if lib.torch:
        ways.append(("torch.multiprocessing: queue.put, queue.get", partial(_by_queue, lib.torch)))
    ways.append((BARE, _by_the_driver))
    ways.append((BARE_OBJECT, _by_the_driver_and_a_server))
    rows: list[dict[str, Any]] = []
    for name, way in ways:
        row: dict[str, Any] = {"operation": name}
        try:
            took = way(driver, nbytes, rounds + 1)[1:]  # the first one sets things up
        except Exception as error:
            rows.append({**row, "error": f"{type(error).__name__}: {error}"[:200]})
            continue
        finally:
            lib.trim()
        row["value"] = round(statistics.median(took), 3)
        if (not rows and nbytes in LIMITS) or (name == pooled and nbytes == MIB):
            row |= {"limit": LIMITS[nbytes], "met": row["value"] <= LIMITS[nbytes]}
        elif rows and "value" in rows[0]:
            row["ratio"] = round(row["value"] / rows[0]["value"], 3)
        rows.append(row)
    return rows


def _by_handle(allocator: str, driver: Driver, nbytes: int, rounds: int) -> list[float]:
    return shared_by(nbytes, rounds, allocator, HAMR_CUDA_POOL_SHARED="1")


def _by_the_driver(driver: Driver, nbytes: int, rounds: int) -> list[float]:
    with bare_hand_over.calls() as (_, library):
        return bare_hand_over.took(nbytes, rounds, library)


def _by_the_driver_and_a_server(driver: Driver, nbytes: int, rounds: int) -> list[float]:
    return bare_object.took(nbytes, rounds)


def _by_store(with_cupy: bool, driver: Driver, nbytes: int, rounds: int) -> list[float]:
    from hamr.store import connect

    took = []
    with serving(MIB) as path, connect(path) as client:
        child = Child.of("store_cuda.child_get", path, int(with_cupy))
        try:
            child.line()
            for _ in range(rounds):
                builder = client.create(nbytes, "u1", device=0)
                builder.buffer.fill(FILL)
                driver.synchronize()
                start = time.perf_counter_ns()
                id = builder.seal()
                child.tell(id)
                took.append((int(child.line()) - start) / 1e3)
                client.delete(id)
        finally:
            child.end()
    return took


def child_get(path: str, with_cupy: str) -> None:
    """Have each object whose id it is told, and answer when."""
    from hamr.store import connect

    asarray: Callable[[Any], Any] = _cupy().asarray if int(with_cupy) else _itself
    with connect(path) as client:
        answer("ready")
        for id in told():
            found = asarray(client.get(id))
            end = time.perf_counter_ns()
            check(found)
            answer(end)
            del found


def _itself(array: Any) -> Any:
    return array


def _cupy() -> Any:
    cupy = import_module("cupy")
    cupy.zeros(1)
    return cupy


def _by_ipc(cupy: Any, driver: Driver, nbytes: int, rounds: int) -> list[float]:
    took = []
    child = Child.of("store_cuda.child_ipc", nbytes)
    try:
        child.line()
        for _ in range(rounds):
            memory = cupy.cuda.Memory(nbytes)  # none of the pool's, which come in parts
            cupy.cuda.runtime.memset(memory.ptr, FILL, nbytes)
            driver.synchronize()
            start = time.perf_counter_ns()
            child.tell(cupy.cuda.runtime.ipcGetMemHandle(memory.ptr).hex())
            took.append((int(child.line()) - start) / 1e3)
            child.line()  # it has closed the handle
            del memory
    finally:
        child.end()
    return took


def child_ipc(nbytes: str) -> None:
    """Open each handle that it is told, and answer when it had the array."""
    cupy, size = _cupy(), int(nbytes)
    cuda = cupy.cuda
    answer("ready")
    for text in told():
        at = cuda.runtime.ipcOpenMemHandle(bytes.fromhex(text))
        memory = cuda.MemoryPointer(cuda.UnownedMemory(at, size, None), 0)
        found = cupy.ndarray((size,), "u1", memory)
        end = time.perf_counter_ns()
        check(found)
        answer(end)
        cuda.runtime.ipcCloseMemHandle(at)
        answer("closed")


def _by_queue(torch: Any, driver: Driver, nbytes: int, rounds: int) -> list[float]:
    context = import_module("torch.multiprocessing").get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    child = context.Process(target=child_queue, args=(tensors, answers), daemon=True)
    took = []
    child.start()
    try:
        answers.get(timeout=120)
        for _ in range(rounds):
            tensor = torch.full((nbytes,), FILL, dtype=torch.uint8, device="cuda")
            driver.synchronize()
            start = time.perf_counter_ns()
            tensors.put(tensor)
            took.append((answers.get(timeout=120) - start) / 1e3)
            answers.get(timeout=120)  # it has let go of the tensor
            del tensor
        tensors.put(None)
        child.join(30)
    finally:
        child.kill()
        child.join()
    return took


def child_queue(tensors: Any, answers: Any) -> None:
    """Take tensors out of a queue until None comes, and answer when."""
    import_module("torch").zeros(1, device="cuda")
    answers.put("ready")
    while (found := tensors.get()) is not None:
        end = time.perf_counter_ns()
        check(found)
        answers.put(end)
        del found
        answers.put("let go")
