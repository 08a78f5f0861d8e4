"""A server's figures for Prometheus, by its own client library."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .server import Server


class Figures:
    """What prometheus_client collects whenever somebody asks."""

    def __init__(self, server: Server, core: Any) -> None:
        self._server, self._core = server, core

    def collect(self) -> Iterator[Any]:
        """A gauge for each figure; those of memory by memory."""
        gauge = self._core.GaugeMetricFamily
        figures = self._server.statistics()
        memories = figures.pop("memory")
        for name, value in figures.items():
            if isinstance(value, int):
                yield gauge(f"hamr_store_{name}", f"{name} of the store", value)
        for name in next(iter(memories.values()), {}):
            family = gauge(
                f"hamr_store_memory_{name}", f"{name} of a memory, bytes", labels=["memory"]
            )
            for memory, row in memories.items():
                family.add_metric([memory], row[name])
            yield family


def serve(server: Server, address: str) -> Any:
    """Serve them at ``port`` of this machine, or at ``host:port``; returns what ends it.

    ModuleNotFoundError without prometheus_client.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"metrics is {address!r}: accepted is PORT or HOST:PORT")
    client, core = import_module("prometheus_client"), import_module("prometheus_client.core")
    registry = core.CollectorRegistry()
    registry.register(Figures(server, core))
    return client.start_http_server(int(port), host or "127.0.0.1", registry=registry)
