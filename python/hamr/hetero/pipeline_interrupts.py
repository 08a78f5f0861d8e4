"""Ctrl-C while a pipeline runs in a loop of its own."""

from __future__ import annotations

import signal
from asyncio import CancelledError, current_task
from threading import current_thread, main_thread
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Runner, Task
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    _T = TypeVar("_T")

#: Interrupts within so many seconds count as one: wrappers repeat what the terminal has sent.
_SAME = 1.0


class _Interrupts:
    """Cancels a task at the first interrupt, in place of asyncio.Runner's own handler.

    The Runner's handler raises at the second interrupt, wherever the loop's thread is. If that is
    in the middle of an event's bookkeeping, the run would wait forever. An interrupt that comes
    much later is raised nevertheless, for modules that do not return.
    """

    def __init__(self) -> None:
        self.task: Task[Any] | None = None
        self.first: float | None = None

    def handle(self, number: int, frame: object) -> None:
        task, now = self.task, monotonic()
        if self.first is None and task is not None and not task.done():
            self.first = now
            task.cancel()
            task.get_loop().call_soon_threadsafe(_nothing)  # to wake the loop
        elif self.first is None or now - self.first > _SAME:
            raise KeyboardInterrupt


def _nothing() -> None: ...


def run_until_interrupted(runner: Runner, coroutine: Coroutine[Any, Any, _T]) -> _T:
    """``runner.run``. After Ctrl-C it ends as soon as the cancelled coroutine has ended."""
    ours = current_thread() is main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return runner.run(coroutine)
    interrupts = _Interrupts()

    async def run() -> _T:
        interrupts.task = current_task()
        return await coroutine

    signal.signal(signal.SIGINT, interrupts.handle)
    try:
        return runner.run(run())
    except CancelledError:
        if interrupts.first is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
