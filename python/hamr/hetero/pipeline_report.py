"""The times of a pipeline's modules, and the waits of its events."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class ModuleReport:
    """The figures of a module in a run. Times are in seconds, and sums over its calls.

    ``calls`` counts calls of produce, or of acquire if there is no produce. ``failures`` counts
    all phases.
    """

    __slots__ = (
        "calls",
        "device_stall_ns",
        "failures",
        "kind",
        "name",
        "time_ns",
        "worker_stall_ns",
    )

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.calls = self.failures = 0
        self.time_ns = self.device_stall_ns = self.worker_stall_ns = 0

    @property
    def time(self) -> float:
        """The time of its functions; for a coroutine including what it awaited."""
        return self.time_ns / 1e9

    @property
    def device_stall(self) -> float:
        """How long events waited for work that it had enqueued."""
        return self.device_stall_ns / 1e9

    @property
    def worker_stall(self) -> float:
        """How long events waited for a thread to call it."""
        return self.worker_stall_ns / 1e9

    @property
    def stall(self) -> float:
        """How long events waited."""
        return self.device_stall + self.worker_stall


class Report:
    """The figures of a run so far: ``report["name"]`` is a ModuleReport; as text it is a table.

    ``events`` have ended in ``seconds``, ``failed`` of them with an error.
    """

    def __init__(self, modules: Iterable[tuple[str, str]]) -> None:
        self.modules = {name: ModuleReport(name, kind) for name, kind in modules}
        self.events = self.failed = 0
        self.seconds = 0.0

    def __getitem__(self, name: str) -> ModuleReport:
        return self.modules[name]

    def __str__(self) -> str:
        width = max(len("module"), *(len(name) for name in self.modules))
        head = f"{'module':{width}}  kind       calls  failed      time µs   device µs   worker µs"
        lines = [
            f"{self.events} events, {self.failed} failed, in {self.seconds:.3f} s; "
            "of a call, and of an event's waits for the device and for a thread:",
            head,
        ]
        for row in self.modules.values():
            calls = max(row.calls, 1)
            each = (row.time_ns, row.device_stall_ns, row.worker_stall_ns)
            numbers = "".join(f"{ns / calls / 1e3:12.1f}" for ns in each)
            lines.append(f"{row.name:{width}}  {row.kind:8}{row.calls:8}{row.failures:8} {numbers}")
        return "\n".join(lines)
