"""Threads for the modules of a pipeline that may take long or wait."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread, current_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable, Hashable
    from contextvars import Context
    from typing import Any, Protocol

    class Job(Protocol):
        """What a thread does. Neither raises."""

        def run(self, thread: int) -> None:
            """Do it, on the thread of a number from 1."""

        def over(self) -> None:
            """It is done; called by the loop."""


#: In nanoseconds: what takes less is not worth a thread, which begins as late as that.
_SHORT = 100_000


class Lengths:
    """How long jobs take lately: those that are short are done on the loop's own thread.

    The longest that was counts, less an eighth for each that came after it: of a kind of job that
    takes long now and then, threads do most.
    """

    def __init__(self) -> None:
        self._longest: dict[Hashable, float] = {}  # in nanoseconds, by kind

    def short(self, kind: Hashable) -> bool:
        """Whether the next one is expected to be."""
        return self._longest.get(kind, _SHORT) < _SHORT

    def took(self, kind: Hashable, nanoseconds: int) -> None:
        """One has taken so long."""
        before = self._longest.get(kind, 2 * _SHORT)
        self._longest[kind] = max(nanoseconds, before * 7 / 8)


class Workers:
    """Up to ``most`` threads, and the loop that is told of each job that is done.

    All of it is called on the loop's thread. A job costs a turn of a queue, and the loop is woken
    once for all that are over by then.
    """

    def __init__(self, loop: AbstractEventLoop, most: int, context: Context) -> None:
        self._loop, self._most, self._context = loop, most, context
        self._jobs: SimpleQueue[Job | list[Any] | None] = SimpleQueue()
        self._done: deque[Job] = deque()
        self._told = False  # the loop, that there are some
        self._busy = 0
        self.threads: list[Thread] = []
        self._ended: Callable[[Thread], None]

    def submit(self, job: Job) -> None:
        """Have a thread do it, when one is free."""
        self._enough(self._busy + 1)
        if not self.threads:
            raise RuntimeError("no thread can be started")
        self._busy += 1
        self._jobs.put(job)

    def drop(self, things: list[Any]) -> None:
        """Have a thread let go of a list's content: the end of page-locked memory may wait."""
        self._enough(1)
        if self.threads:
            self._jobs.put(things)

    def _enough(self, threads: int) -> None:
        if threads > len(self.threads) < self._most:
            number = len(self.threads) + 1
            thread = Thread(
                target=self._context.copy().run,
                args=(self._work, number),
                name=f"hamr-pipeline-{number}",
                daemon=True,
            )
            with suppress(RuntimeError):  # there are too many: those that there are will do
                thread.start()
                self.threads.append(thread)

    def end(self) -> Future[None]:
        """Once all jobs are over; done when all threads are, which may let go of things yet."""
        over: Future[None] = self._loop.create_future()
        left = len(self.threads)

        def ended(thread: Thread) -> None:
            nonlocal left
            thread.join()
            left -= 1
            if not left:
                over.set_result(None)

        self._ended = ended
        for _ in self.threads:
            self._jobs.put(None)
        self.threads.clear()
        if not left:
            over.set_result(None)
        return over

    def _work(self, number: int) -> None:
        take, done = self._jobs.get, self._done
        while (job := take()) is not None:
            if isinstance(job, list):
                job.clear()
                continue
            job.run(number)
            done.append(job)
            del job  # it has what an event holds
            if not self._told:
                self._told = True
                self._tell(self._collect)
        self._tell(self._ended, current_thread())

    def _tell(self, what: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed by somebody
            self._loop.call_soon_threadsafe(what, *arguments, context=self._context)

    def _collect(self) -> None:
        self._told = False  # before it looks: what comes later is told of again
        while self._done:
            self._busy -= 1
            self._done.popleft().over()
