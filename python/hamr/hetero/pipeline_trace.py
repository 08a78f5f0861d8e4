"""A trace of a pipeline, as the JSON that Perfetto and chrome://tracing open."""

from __future__ import annotations

import json
import os
from collections import deque
from time import perf_counter_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How many spans are kept: the last ones.
KEPT = 1_000_000

_HOST, _STREAMS = 1, 2  # the "processes" of the trace


class Trace:
    """Spans in rows: threads that call modules, and events in flight with what they wait for."""

    def __init__(self, path: str | os.PathLike[str], modules: int) -> None:
        """``modules`` is how many there are: each may have a row in each stream of events."""
        with open(path, "w", encoding="utf-8"):  # so that a wrong path fails now, not at the end
            self.path = path
        self._each = modules + 1
        self.begun = perf_counter_ns()
        self._spans: deque[tuple[int, int, str, str, int, int, int]] = deque(maxlen=KEPT)
        self._rows: dict[tuple[int, int], str] = {(_HOST, 0): "event loop"}

    def called(
        self, thread: int, name: str, phase: str, begun: int, ended: int, event: int
    ) -> None:
        """Add a module's call, on the loop's thread, 0, or on a worker."""
        self._add(_HOST, thread, f"worker {thread}", name, phase, begun, ended, event)

    def waited(
        self, stream: int, module: int, name: str, phase: str, begun: int, ended: int, event: int
    ) -> None:
        """Add a wait of an event, or a coroutine: other spans of the stream may overlap it."""
        row = stream * self._each + module + 1
        self._add(_STREAMS, row, f"stream {stream}: {name}", name, phase, begun, ended, event)

    def event(self, stream: int, begun: int, ended: int, event: int) -> None:
        """Add an event, from its first module to its last."""
        row = stream * self._each
        self._add(_STREAMS, row, f"stream {stream}", f"event {event}", "event", begun, ended, event)

    def _add(
        self,
        process: int,
        row: int,
        title: str,
        name: str,
        phase: str,
        begun: int,
        ended: int,
        event: int,
    ) -> None:
        self._rows.setdefault((process, row), title)
        self._spans.append((process, row, name, phase, begun, ended, event))

    def events(self) -> list[dict[str, Any]]:
        """Trace events: names of rows, and complete events ("X") with times in microseconds."""
        found: list[dict[str, Any]] = [
            _named("process_name", _HOST, 0, "host"),
            _named("process_name", _STREAMS, 0, "events in flight"),
        ]
        for (process, row), title in sorted(self._rows.items()):
            found.append(_named("thread_name", process, row, title))
            sort = {"name": "thread_sort_index", "args": {"sort_index": row}}
            found.append({"ph": "M", "pid": process, "tid": row, **sort})
        for process, row, name, phase, begun, ended, event in self._spans:
            found.append(
                {
                    "ph": "X",
                    "pid": process,
                    "tid": row,
                    "name": name,
                    "cat": phase,
                    "ts": (begun - self.begun) / 1000,
                    "dur": (ended - begun) / 1000,
                    "args": {"event": event, "phase": phase},
                }
            )
        return found

    def write(self) -> None:
        """Write the file. An existing file is replaced."""
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": self.events(), "displayTimeUnit": "ms"}, file)


def _named(what: str, process: int, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": row, "name": what, "args": {"name": name}}
