"""Memory of devices that is given back for a while, and keeps its addresses."""

from __future__ import annotations

import os
from _thread import _local

import hamr._native as _native

from .errors import OutOfMemory
from .library import core
from .out_of_memory import relieve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypedDict

    class PausableMemory(TypedDict):
        """What is known of a name."""

        bytes: dict[int, int]
        paused: bool
        keep: str
        locked: int


_GIVE_UP, _COLLECTED = 0, 3  # what relieve() answers

_here = _local()  # .blocks: those that the thread is in, each with what was its tag before


class pausable:  # noqa: N801 -- read as a verb, as device is
    """A block of the calling thread's code in which memory is made that can be paused by a name.

    That is memory of allocator ``cuda_vmm``, and what CuPy, torch and Numba take from hamr by
    ``hamr.allocators``; begin ``use_in_torch()`` inside the block, since torch keeps memory of
    its own. In blocks within blocks the innermost name counts. Other threads are not part of the
    block. Growth and copies: what grows stays with its name, and a copy is made where it is made.
    Nothing that awaits belongs in the block, since other tasks would run inside.
    """

    def __init__(self, name: str, /) -> None:
        self.name = _checked(name)

    def __enter__(self) -> pausable:
        before = core().EnterTag(self.name)
        _here.blocks = [*getattr(_here, "blocks", ()), (self, before)]
        return self

    def __exit__(self, *exception: object) -> None:
        blocks = getattr(_here, "blocks", [])
        at = max((i for i, (block, _) in enumerate(blocks) if block is self), default=-1)
        if at < 0:
            raise RuntimeError(f"{self!r} is left by a thread that is not in it")
        _, before = blocks.pop(at)
        if at == len(blocks):
            core().LeaveTag(before)
        else:  # a generator that was in it ended inside another block
            blocks[at] = (blocks[at][0], before)

    def __repr__(self) -> str:
        return f"hamr.pausable({self.name!r})"


def _checked(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}: accepted is a str")
    if not name:
        raise ValueError("name is '': accepted is a name")
    return name


def pause(
    name: str,
    /,
    *,
    keep: Literal["nothing", "host", "disk"],
    folder: str | os.PathLike[str] | None = None,
) -> None:
    """Give the device memory of a name back, and keep its addresses.

    ``keep`` says what happens to contents: ``"nothing"`` loses them, ``"host"`` copies them to
    page-locked memory, ``"disk"`` to a file without a name in ``folder``, by default that of
    ``tempfile``. It waits for all work on the devices, other libraries' included. Until
    ``resume()`` hamr raises PausedMemory where the memory would be used, and other code must not
    use it; it may be freed. After an error all is as before. Again with the same ``keep`` it does
    nothing. Inside a capture into a graph it fails, and may end the capture.

    ValueError for a name that nothing was made by, OutOfMemory if there is too little page-locked
    memory or room on the disk.
    """
    if keep not in ("nothing", "host", "disk"):
        raise ValueError(f"keep is {keep!r}: accepted are 'nothing', 'host' and 'disk'")
    if folder is not None and keep != "disk":
        raise ValueError(f"folder is {folder!r}: with keep={keep!r} there is no file")
    if keep == "disk" and folder is None:
        from tempfile import gettempdir

        folder = gettempdir()
    core().Pause(_checked(name), keep, "" if folder is None else os.fspath(folder))


def resume(name: str, /) -> None:
    """Take device memory for a name again, at the same addresses, with what ``pause()`` kept.

    Graphs that were captured before can be launched again. OutOfMemory if there is too little
    memory: all is paused as before then, and ``resume()`` can be called again. For memory that is
    not paused it does nothing.
    """
    asked = 0
    while True:
        try:
            core().Resume(_checked(name))
            return
        except OutOfMemory as error:
            known = pausable_memory().get(name)
            devices = known["bytes"] if known else {}
            answer, *_ = relieve(min(devices, default=0), error.size, "cuda", asked, 0)
            if answer == _GIVE_UP:
                raise
            asked = 2 if answer == _COLLECTED else 1


def pausable_memory() -> dict[str, PausableMemory]:
    """What memory can be paused, by name.

    ``bytes`` are those of each device, in use or given back; ``paused`` says which. ``keep`` is
    what is kept while it is paused, else ``""``. ``locked`` are bytes of page-locked memory, for
    contents or, after ``resume()``, for the next ``pause()``; ``hamr.trim()`` returns the latter.
    A name without memory is there while it is paused.
    """
    found: dict[str, PausableMemory] = {}
    for name, device, size, paused, keep, locked in _native.pausable_memory():
        known = found.setdefault(
            name, {"bytes": {}, "paused": paused, "keep": keep if paused else "", "locked": locked}
        )
        if device >= 0:
            known["bytes"][device] = size
    return found
