"""What Prometheus is told: names, types and words as its own linter wants them."""

import re
import urllib.request

import pytest

from hamr.store import metrics

parser = pytest.importorskip("prometheus_client.parser")


@pytest.fixture
def text(server, free_port):
    exporter, thread = metrics.serve(server, str(free_port))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics", timeout=30) as answer:
            yield answer.read().decode()
    finally:
        exporter.shutdown()
        exporter.server_close()
        thread.join()


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_each_figure_has_a_metric(server, text):
    figures = server.statistics()
    (row,) = figures.pop("memory").values()
    assert set(metrics.FIGURES) == set(figures)
    assert set(metrics.OF_MEMORY) == set(row)
    families = list(parser.text_string_to_metric_families(text))
    assert len(families) == len(metrics.FIGURES) + len(metrics.OF_MEMORY)
    values = {sample.name: sample.value for family in families for sample in family.samples}
    assert values["hamr_store_memory_limit_bytes"] == row["limit"]
    assert values["hamr_store_requests_total"] >= 0


def test_names_and_words(text):
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    assert helps.keys() == kinds.keys()
    for name, kind in kinds.items():
        assert re.fullmatch(r"hamr_store(_[a-z]+)+", name)
        assert kind in ("counter", "gauge")
        assert (kind == "counter") == name.endswith("_total"), name
        assert not re.search(r"_(counter|gauge|count|sum|bucket|kilobytes|mib|ms)\b", name)
        assert helps[name][0].isupper()
        assert helps[name].endswith(".")
        assert ("bytes" in helps[name].lower()) == name.removesuffix("_total").endswith("_bytes")
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels == ({"memory": "host"} if "_memory_" in sample.name else {})
