"""A server's figures for Prometheus, served by prometheus_client."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .server import Server


class Figure(NamedTuple):
    """A metric: its name without the common prefix, its help, and whether it only grows."""

    name: str
    help: str
    grows: bool = False


#: By key of ``Server.statistics()``. The library adds ``_total`` to names of what only grows.
FIGURES = {
    "objects": Figure("objects", "Objects that the store has."),
    "unsealed": Figure("unsealed_objects", "Objects that their makers have not sealed yet."),
    "names": Figure("names", "Names that objects have."),
    "leases": Figure("leases", "Leases that clients have of objects."),
    "connections": Figure("connections", "Connections of clients."),
    "table": Figure("table_bytes", "Bytes that are reckoned for what is known of objects."),
    "table_limit": Figure("table_limit_bytes", "Most bytes that may be known of objects."),
    "evicted": Figure("evicted_objects", "Objects that were deleted for want of room.", True),
    "spilled": Figure("spilled_bytes", "Bytes of objects that are in files."),
    "spills": Figure("spills", "Times that memory was written to a file.", True),
    "restored": Figure("restores", "Times that memory was read back from a file.", True),
    "requests": Figure("requests", "Requests that clients have made.", True),
    "refused": Figure("refused_connections", "Connections that were refused.", True),
    "breaches": Figure(
        "broken_connections", "Connections that ended as the client broke the protocol.", True
    ),
    "ready_hits": Figure("ready_hits", "Large objects that memory was ready for.", True),
    "ready_misses": Figure("ready_misses", "Large objects that no memory was ready for.", True),
}
#: Metrics of each memory, with the label ``memory``: "host", or a device's UUID.
OF_MEMORY = {
    "limit": Figure("memory_limit_bytes", "Most bytes that may be used of a memory; 0 is any."),
    "used": Figure("memory_used_bytes", "Bytes that objects use of a memory."),
    "peak": Figure("memory_peak_bytes", "Most bytes that were used of a memory at a time."),
    "lingering": Figure(
        "memory_lingering_bytes", "Bytes that clients keep of what was deleted by force."
    ),
    "ready": Figure("memory_ready_bytes", "Bytes that are ready for the next large object."),
}


class Figures:
    """A collector for prometheus_client."""

    def __init__(self, server: Server, core: Any) -> None:
        self._server, self._core = server, core

    def collect(self) -> Iterator[Any]:
        """A metric for each figure. Metrics of memory have a value for each memory."""
        figures = self._server.statistics()
        memories = figures.pop("memory")
        for key, figure in FIGURES.items():
            if key in figures:
                family = self._family(figure)
                family.add_metric([], figures[key])
                yield family
        for key, figure in OF_MEMORY.items():
            family = self._family(figure, "memory")
            for memory, row in memories.items():
                family.add_metric([memory], row[key])
            yield family

    def _family(self, figure: Figure, *labels: str) -> Any:
        kind = self._core.CounterMetricFamily if figure.grows else self._core.GaugeMetricFamily
        return kind(f"hamr_store_{figure.name}", figure.help, labels=labels)


def serve(server: Server, address: str) -> Any:
    """Serve the figures at ``port`` of this machine, or at ``host:port``. Returns what ends it.

    ModuleNotFoundError without prometheus_client.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"metrics is {address!r}: accepted is PORT or HOST:PORT")
    client, core = import_module("prometheus_client"), import_module("prometheus_client.core")
    registry = core.CollectorRegistry()
    registry.register(Figures(server, core))
    return client.start_http_server(int(port), host or "127.0.0.1", registry=registry)
