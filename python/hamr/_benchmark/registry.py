"""What ``hamr bench`` measures: a line for each part."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from .groups import Settings

    class Item(Protocol):
        """What is measured at once. ``key`` names the record's list that the result goes to."""

        key: str
        title: str

        def measure(self, synchronize: Callable[[], None], settings: Settings) -> Any:
            """What was measured, as JSON has it."""

        def clear(self) -> None:
            """Let go of what it holds."""


class Part(NamedTuple):
    """A part: its name, what it needs ("host" or "cuda"), and where its items are made.

    ``function`` is ``module:name`` in this folder: a generator of items, called with the
    ``Libraries`` and the ``Driver``, which is None where there is no CUDA. It keeps to
    ``lib.settings``, takes the memory of an item just before it yields it, and may raise: what
    it yielded before stays measured. ``seconds`` is about how long it takes on an H200.
    """

    name: str
    needs: str
    function: str
    what: str
    seconds: float
    usual: bool = True  # else it is measured only if it is named

    def items(self, lib: Any, driver: Any) -> Iterator[Item]:
        """What it measures, one after the other."""
        module, _, name = self.function.partition(":")
        make = getattr(import_module(f"{__package__}.{module}"), name)
        found: Iterator[Item] = make(lib, driver)
        return found


#: What matters most comes first: there may be no time for the rest.
PARTS = (
    Part("operations", "host", "host:items", "sharing, views and small copies on the host", 12),
    Part("host-allocation", "host", "allocating:on_host", "memory of the host, and threads", 8),
    Part("hand-over", "cuda", "cuda:hand_over", "sharing a GPU's memory without a copy", 3),
    Part("dlpack", "cuda", "cuda:dlpack", "the same by DLPack", 2),
    Part("small-copies", "cuda", "cuda:small_moves", "1 KiB between NumPy and a GPU", 3),
    Part("to-host", "cuda", "copying:to_host", "from a GPU to ordinary memory, by size", 35),
    Part("to-cuda", "cuda", "copying:to_cuda", "from ordinary memory to a GPU, by size", 30),
    Part("allocation", "cuda", "allocating:allocation", "memory that CUDA knows", 9),
    Part("threads", "cuda", "allocating:from_threads", "the same from 8 threads", 3),
    Part("many-fields", "cuda", "cuda_many:many", "500 arrays of 64 KiB at once", 8),
    Part("growth", "cuda", "growth:appending", "appending to a GPU's memory", 15),
    Part("waits", "cuda", "waiting:waits", "how soon a wait ends", 5),
    Part("ahead", "cuda", "run_ahead:ahead", "loops of libraries that run ahead of a GPU", 4),
    Part("scheduling", "cuda", "scheduling:overheads", "products and scopes of hamr.hetero", 6),
    Part("first-call", "cuda", "processes:first_calls", "the first copy of a process", 30),
    Part("pinned", "cuda", "copying:pinned", "between a GPU and page-locked memory, by size", 20),
    Part("on-device", "cuda", "copying:on_device", "within a GPU's memory, by size", 8),
    Part("compute", "cuda", "cuda_large:compute", "converting, transposing and filling", 3),
    Part("peers", "cuda", "cuda_large:peers", "from one GPU to another", 2),
    Part("host-copies", "host", "host_copying:on_host", "copies on the host, by size", 25),
    Part("blocks", "cuda", "blocks_beside:items", "scattered blocks of pools", 80, usual=False),
    Part("host-blocks", "host", "blocks:on_host", "the same on the host", 10, usual=False),
    Part("pipeline", "cuda", "pipelines:chains", "a chain of modules", 45, usual=False),
    Part("pygpu", "cuda", "pygpu:items", "kernels and arrays of hamr.pygpu", 6, usual=False),
    Part("store", "host", "store:on_host", "objects of the store", 40, usual=False),
    Part("weights", "host", "weights:on_host", "groups of many arrays", 30, usual=False),
    Part("weights-cuda", "cuda", "weights:on_cuda", "the same on a GPU", 90, usual=False),
    Part("pausing", "cuda", "paused:items", "memory that is paused and resumed", 20, usual=False),
    Part("store-cuda", "cuda", "store_cuda:hand_over", "to another process", 30, usual=False),
    Part("allocators", "cuda", "library_pools:items", "libraries on hamr's pool", 60, usual=False),
    Part("scaling", "cuda", "processes:on_cores", "large copies on 1 to 16 cores", 40, usual=False),
)


def chosen(names: list[str] | None, scaling: bool = False) -> list[Part]:
    """The parts of the names or of what they need; a ValueError names what there is not."""
    known = {part.name for part in PARTS} | {part.needs for part in PARTS}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        accepted = ", ".join(part.name for part in PARTS)
        raise ValueError(f"{unknown[0]!r} is no part: accepted are {accepted}, host, cuda")
    if names is None:
        return [part for part in PARTS if part.usual or (scaling and part.name == "scaling")]
    named = set(names) | ({"scaling"} if scaling else set())
    return [p for p in PARTS if p.name in named or (p.usual and p.needs in named)]
