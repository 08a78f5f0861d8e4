"""The progress of a pipeline: tqdm's bar if that is installed, else a line."""

from __future__ import annotations

import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Seconds between two lines.
PAUSE = 0.2


class Progress:
    """Progress on the standard error; ``total`` is None if it is not known."""

    def __init__(self, total: int | None) -> None:
        self._total, self._events, self._failed = total, 0, 0
        self._begun = self._told = monotonic()
        self._bar: Any = None
        try:
            from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            return
        self._bar = tqdm(total=total, unit="event", file=sys.stderr)

    def one(self, failed: bool) -> None:
        """Count an event that has ended."""
        self._events += 1
        self._failed += failed
        if self._bar is not None:
            if failed:
                self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update()
        elif monotonic() - self._told >= PAUSE:
            self._tell("\r" if sys.stderr.isatty() else "\n")

    def end(self) -> None:
        """Show the last state, and end."""
        if self._bar is not None:
            self._bar.close()
        else:
            self._tell("\n")

    def _tell(self, end: str) -> None:
        self._told = monotonic()
        of = "" if self._total is None else f" of {self._total}"
        failed = f", {self._failed} failed" if self._failed else ""
        rate = self._events / max(self._told - self._begun, 1e-9)
        line = f"{self._events}{of} events{failed}, {rate:.0f}/s"
        print(f"{line:50}" if end == "\r" else line, end=end, file=sys.stderr, flush=True)
