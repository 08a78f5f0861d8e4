"""Waiting in a thread for a coroutine, which goes on as soon as the wait is over."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable


async def wait_in_thread(
    loop: AbstractEventLoop, wait: Callable[[int], bool], milliseconds: int
) -> None:
    """Call ``wait(milliseconds)`` in a thread of the loop's executor; its errors are raised.

    The executor tells a loop of an end only after its own work is done, some tenths of a
    millisecond late. A descriptor that the loop watches is faster.
    """
    ended = loop.create_future()
    descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    # A cancelled wait goes on in its thread, and must not write to what has been closed.
    last_of_two = [True, False]

    def leave() -> None:
        if last_of_two.pop():
            os.close(descriptor)

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    failed: list[BaseException] = []

    def work() -> None:
        try:
            wait(milliseconds)
        except BaseException as error:
            failed.append(error)
        finally:
            os.eventfd_write(descriptor, 1)
            leave()

    try:
        try:
            loop.add_reader(descriptor, end)
            loop.run_in_executor(None, work)
        except BaseException:
            leave()  # for the work, which has not begun
            raise
        await ended
    finally:
        loop.remove_reader(descriptor)
        leave()
    if failed:
        raise failed[0]
