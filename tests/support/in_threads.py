"""Several threads at once, whose errors are the caller's."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def in_threads(run: Callable[[int], object], count: int = 4) -> None:
    """Call ``run(number)`` in each of the threads; the first error is raised when all ended."""
    errors = []

    def work(number: int) -> None:
        try:
            run(number)
        except BaseException as error:  # for the caller's thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
