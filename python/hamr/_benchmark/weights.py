"""Many arrays that another process gets at once: by a group, one by one, and by other libraries.

A process that has just begun gets all of them once, and then again and again.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, NamedTuple

from . import bare_object
from .children import Child, answer, serving, told
from .driver import Driver
from .groups import KIB, MIB, Libraries, Rows, size_text
from .share import FILL

#: A model's arrays of float16, as one with a billion parameters has them.
COUNT = 137
ALL = 1905 * MIB
SMALL, SMALL_COUNT = 4 * KIB, 10_000
#: Microseconds on a GPU, in a process that has just begun.
LIMITS = {"get_group": 3e3, "get_many": 12e3, "put_group": 30e3}
SMALL_LIMIT = 20e3
#: GB/s, from files that are in the page cache to a GPU.
LOAD_LIMIT = 25.0
OURS, THEIRS = "hamr: load_group", "safetensors: load_file"
_ROUNDS, _AGAIN = 3, 5
#: Seconds until a process is done with what it has let go of.
_BETWEEN = 0.02
BARE = "the driver alone: the calls that get of each makes"
_NAME = "weights"
_SMALL_NAME = "small"


def on_host(lib: Libraries, driver: Driver | None) -> Iterator[Rows]:
    """Groups of the host's memory."""
    return _items(lib, -1)


def on_cuda(lib: Libraries, driver: Driver) -> Iterator[Rows]:
    """Groups of a GPU's memory."""
    return _items(lib, 0)


class _Case(NamedTuple):
    """What is measured: so many arrays of so many bytes, and small ones, on a device or the host.

    ``whole`` says whether it is what the limits are for.
    """

    device: int
    arrays: int
    nbytes: int
    small: int
    rounds: int
    whole: bool

    @property
    def all(self) -> int:
        """The bytes of the arrays."""
        return self.arrays * self.nbytes


def _items(lib: Libraries, device: int) -> Iterator[Rows]:
    quick = lib.settings.quick
    count = COUNT // (10 if quick else 1)
    nbytes = min(ALL, 2 * lib.settings.largest) // count // 256 * 256
    whole = device >= 0 and count * nbytes > ALL * 0.99
    small = SMALL_COUNT // (100 if quick else 1)
    case = _Case(device, count, nbytes, small, 1 if quick else _ROUNDS, whole)
    what, where = f"{case.all / MIB:.0f} MiB", "the host" if device < 0 else "CUDA"
    title = f"{count} arrays, together {what}, of {where}, by another process"
    yield Rows(title, "us", partial(_hand_overs, lib, case))
    yield Rows(f"{what} of a safetensors file to {where}", "GB/s", partial(_loads, lib, case))


def _hand_overs(lib: Libraries, case: _Case) -> list[dict[str, Any]]:
    """Medians of several processes of each way, which take turns."""
    room = 4 * (case.all + case.small * SMALL) + 64 * MIB
    took: dict[str, list[list[float]]] = {}
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        path = stack.enter_context(serving(room))
        ways = {"put_group": "put", "get_group": "group", "get_many": "many", "get": "each"}
        ways = {f"hamr: {name}": kind for name, kind in ways.items()}
        ways[f"hamr: get_group of {case.small} arrays of {size_text(SMALL)}"] = "small"
        ids = stack.enter_context(_stored(path, case))
        file = stack.enter_context(NamedTemporaryFile(dir=_memory_folder()))
        with suppress(ImportError):
            _write(file.name, case)
            ways["safetensors: load_file from memory"] = "safetensors"
        if case.device >= 0:
            ways[BARE] = "bare"
        if lib.torch and case.device >= 0:
            ways["torch.multiprocessing: queue.put, queue.get"] = "queue"
        for _ in range(case.rounds):
            for name, kind in ways.items():
                try:
                    if kind == "queue":
                        times = _by_queue(case)
                    elif kind == "bare":
                        times = bare_object.together(case.nbytes, case.arrays, 1 + _AGAIN)
                    else:
                        times = _by_child(kind, path, case, ids, file.name)
                    took.setdefault(name, []).append(times)
                except Exception as error:
                    failed[name] = f"{type(error).__name__}: {error}"[:200]
                lib.trim()
    return [row for name in ways for row in _rows(name, case, took.get(name, []), failed.get(name))]


def _rows(
    name: str, case: _Case, took: list[list[float]], failed: str | None
) -> Iterator[dict[str, Any]]:
    """A row for the first time in a process, and one for later times."""
    if failed is not None:
        yield {"operation": name, "error": failed}
        return
    limit = LIMITS.get(name.removeprefix("hamr: "))
    if f"of {SMALL_COUNT} arrays" in name:
        limit = SMALL_LIMIT
    for when, values in (
        ("first in a process", [times[0] for times in took]),
        ("again", [each for times in took for each in times[1:]]),
    ):
        value = round(statistics.median(values), 3)
        row: dict[str, Any] = {"operation": f"{name}, {when}", "value": value}
        if limit and case.whole:
            row |= {"limit": limit, "met": value <= limit}
        yield row


@contextmanager
def _stored(path: str, case: _Case) -> Iterator[list[str]]:
    """Objects of all kinds in a store; the texts of the single ones' ids."""
    from hamr.store import connect

    with connect(path) as client:
        client.put_group(_made(case.device, case.nbytes, case.arrays), name=_NAME)
        client.put_group(_made(case.device, SMALL, case.small), name=_SMALL_NAME)
        yield list(client.put_many(list(_made(case.device, case.nbytes, case.arrays).values())))


def _made(device: int, nbytes: int, count: int) -> dict[str, Any]:
    """Arrays as a state_dict has them."""
    import hamr

    shape, on = (count, nbytes // 2), None if device < 0 else device
    allocator = hamr.Allocator.malloc if device < 0 else hamr.Allocator.cuda
    whole = hamr.Buffer(shape, "float16", allocator, device=on, fill=FILL)
    whole.synchronize()
    return {f"layers.{n}.weight": whole[n] for n in range(count)}


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _write(path: str, case: _Case) -> None:
    import numpy as np

    made = _made(-1, case.nbytes, case.arrays)
    save = import_module("safetensors.numpy").save_file
    save({name: np.asarray(each) for name, each in made.items()}, path)


def _by_child(kind: str, path: str, case: _Case, ids: list[str], file: str) -> list[float]:
    """Microseconds of each time in one process."""
    child = Child.of("weights.child", kind, path, case.device, case.nbytes, case.arrays, file)
    try:
        child.line()
        child.tell(" ".join(ids))
        return [float(each) for each in child.line().split()]
    finally:
        child.end()


def child(kind: str, path: str, device: str, nbytes: str, count: str, file: str) -> None:
    """Have all arrays again and again, when it is told to, and answer how long that took."""
    from hamr.store import connect

    on, size = int(device), int(nbytes)
    with connect(path) as client:
        if on >= 0:
            import hamr

            hamr.Buffer(1, "u1", "cuda", device=on, fill=0).synchronize()
        arrays = _made(on, size, int(count)) if kind == "put" else {}
        load = _load_file(on) if kind == "safetensors" else None
        answer("ready")
        ids = next(told()).split()

        def get() -> Any:
            if kind == "put":
                return client.put_group(arrays)
            if kind == "group" or kind == "small":
                return client.get_group(_NAME if kind == "group" else _SMALL_NAME)
            if load is not None:
                return _touched(load(file))
            return client.get_many(ids) if kind == "many" else [client.get(i) for i in ids]

        times = []
        for _ in range(1 + _AGAIN):
            start = time.perf_counter_ns()
            found = get()
            times.append((time.perf_counter_ns() - start) / 1e3)
            if kind == "put":
                client.delete(found)
            elif kind != "safetensors":
                last = found[-1] if isinstance(found, list) else list(found.values())[-1]
                if not (last.get() == FILL).all():
                    raise SystemExit("wrong bytes")
                del last
            del found
            time.sleep(_BETWEEN)
    answer(*times)


def _load_file(device: int) -> Callable[[str], Any]:
    """The function of safetensors, to the host or a GPU."""
    if device < 0:
        return import_module("safetensors.numpy").load_file  # type: ignore[no-any-return]
    load = import_module("safetensors.torch").load_file
    import_module("torch").zeros(1, device=f"cuda:{device}")
    return partial(load, device=f"cuda:{device}")


def _touched(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays that are there: a GPU's work is over."""
    first = next(iter(arrays.values()))
    if hasattr(first, "is_cuda") and first.is_cuda:
        import_module("torch").cuda.synchronize()
    return arrays


def _by_queue(case: _Case) -> list[float]:
    """By a queue of torch: from the call that takes a dictionary until it is there."""
    torch = import_module("torch")
    context = import_module("torch.multiprocessing").get_context("spawn")
    dictionaries, answers = context.Queue(), context.Queue()
    process = context.Process(target=child_queue, args=(dictionaries, answers), daemon=True)
    shape, on = (case.nbytes // 2,), f"cuda:{case.device}"
    made = {
        f"layers.{n}.weight": torch.full(shape, FILL, dtype=torch.float16, device=on)
        for n in range(case.arrays)
    }
    torch.cuda.synchronize()
    process.start()
    took = []
    try:
        answers.get(timeout=120)
        for _ in range(1 + _AGAIN):
            start = time.perf_counter_ns()
            dictionaries.put(made)
            took.append((answers.get(timeout=120) - start) / 1e3)
        dictionaries.put(None)
        process.join(30)
    finally:
        process.kill()
        process.join()
    return took


def child_queue(dictionaries: Any, answers: Any) -> None:
    """Take dictionaries out of a queue until None comes, and answer when."""
    import_module("torch").zeros(1, device="cuda")
    answers.put("ready")
    while (found := dictionaries.get()) is not None:
        answers.put(time.perf_counter_ns())
        del found


def _loads(lib: Libraries, case: _Case) -> list[dict[str, Any]]:
    """Rates in turn, from a file that is in the page cache."""
    from hamr.store import connect

    device = case.device
    took: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    with (
        TemporaryDirectory() as folder,
        serving(2 * case.all + 64 * MIB) as path,
        connect(path) as client,
    ):
        file = os.path.join(folder, "weights.safetensors")
        _write(file, case)

        def by_hamr() -> None:
            client.delete(client.load_group(file, device=None if device < 0 else device))

        ways: dict[str, Callable[[], Any]] = {
            THEIRS: lambda: _touched(_load_file(device)(file)),
            OURS: by_hamr,
        }
        for n in range(case.rounds + 1):
            for name, way in ways.items():
                if name in failed:
                    continue
                start = time.perf_counter()
                try:
                    way()
                except Exception as error:
                    failed[name] = f"{type(error).__name__}: {error}"[:200]
                    continue
                seconds = time.perf_counter() - start
                if n:  # the first ones make contexts, and read the file
                    took.setdefault(name, []).append(case.all / seconds / 1e9)
                lib.trim()
    rows: list[dict[str, Any]] = []
    for name in ways:
        row: dict[str, Any] = {"operation": name}
        if name in failed:
            row["error"] = failed[name]
        else:
            row["value"] = value = round(statistics.median(took[name]), 3)
            if name == OURS and THEIRS in took:
                row["ratio"] = round(value / statistics.median(took[THEIRS]), 3)
            if name == OURS and case.whole:
                row |= {"limit": LOAD_LIMIT, "met": value >= LOAD_LIMIT}
        rows.append(row)
    return rows
