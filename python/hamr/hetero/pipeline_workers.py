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
        """What a thread does. Neither method raises."""

        def run(self, thread: int) -> None:
            """Do it, on the thread with a number from 1 on."""

        def over(self) -> None:
            """Called on the loop when it is done."""


#: In nanoseconds. A shorter job is not worth a thread: handing it over takes about as long.
_SHORT = 100_000


class Lengths:
    """How long jobs took recently. Short ones are done on the loop's own thread.

    The longest time counts, less an eighth for each job after it. So a kind of job that sometimes
    takes long is mostly done by threads.
    """

    def __init__(self) -> None:
        self._longest: dict[Hashable, float] = {}  # in nanoseconds, by kind

    def short(self, kind: Hashable) -> bool:
        """Whether the next job of a kind is expected to be short."""
        return self._longest.get(kind, _SHORT) < _SHORT

    def took(self, kind: Hashable, nanoseconds: int) -> None:
        """Note how long a job has taken."""
        before = self._longest.get(kind, 2 * _SHORT)
        self._longest[kind] = max(nanoseconds, before * 7 / 8)


class Workers:
    """Up to ``most`` threads. The loop learns of each job that is done.

    Call all methods on the loop's thread. A job costs one turn of a queue, and the loop is woken
    once for all jobs that are done by then.
    """

    def __init__(self, loop: AbstractEventLoop, most: int, context: Context) -> None:
        self._loop, self._most, self._context = loop, most, context
        self._jobs: SimpleQueue[Job | list[Any] | None] = SimpleQueue()
        self._done: deque[Job] = deque()
        self._told = False  # whether the loop knows that some are done
        self._busy = 0
        self.threads: list[Thread] = []
        self._ended: Callable[[Thread], None]

    def submit(self, job: Job) -> None:
        """Let a thread do it when one is free."""
        self._enough(self._busy + 1)
        if not self.threads:
            raise RuntimeError("no thread can be started")
        self._busy += 1
        self._jobs.put(job)

    def drop(self, things: list[Any]) -> None:
        """Let a thread clear a list: freeing page-locked memory may wait."""
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
            with suppress(RuntimeError):  # the system has too many: the present ones are enough
                thread.start()
                self.threads.append(thread)

    def end(self) -> Future[None]:
        """End the threads after all jobs. The future is done when all threads have ended."""
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
            del job  # it holds what the event has
            if not self._told:
                self._told = True
                self._tell(self._collect)
        self._tell(self._ended, current_thread())

    def _tell(self, what: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop may be closed
            self._loop.call_soon_threadsafe(what, *arguments, context=self._context)

    def _collect(self) -> None:
        self._told = False  # before it looks: a later job wakes the loop again
        while self._done:
            self._busy -= 1
            self._done.popleft().over()
