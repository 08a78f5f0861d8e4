"""What docs/operations.md says agrees with what there is."""

import argparse
import configparser
import re
import shlex

import pytest

from hamr.store import commands, metrics
from tests.support.documents import blocks_of
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "operations.md"
TEXT = PAGE.read_text(encoding="utf-8")


def blocks(language):
    return [block.text for block in blocks_of(PAGE) if block.language == language]


def known_names():
    figures = [*metrics.FIGURES.values(), *metrics.OF_MEMORY.values()]
    return {f"hamr_store_{figure.name}{'_total' * figure.grows}" for figure in figures}


def test_the_units():
    units = {}
    for text in blocks("ini"):
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str
        unit.read_string(text)
        units[text.partition("\n")[0]] = unit
    made, service = units["# hamr-store.socket"]["Socket"], units["# hamr-store.service"]["Service"]
    assert made["ListenSequentialPacket"] == "%t/hamr/store.sock"
    assert (made["SocketMode"], made["DirectoryMode"]) == ("0600", "0700")
    program, *arguments = shlex.split(service["ExecStart"])
    assert program.endswith("/hamr")
    assert arguments[0] == "store"
    parser = argparse.ArgumentParser()
    commands.add_options(parser)
    chosen = parser.parse_args(arguments[1:])
    assert chosen.store_command == "serve"
    assert chosen.metrics == "127.0.0.1:9431"


def test_the_table_has_each_figure(server):
    rows = dict(re.findall(r"^\| `([a-z_… ]+)` \| `(hamr_\w+)` \|", TEXT, re.MULTILINE))
    figures = server.statistics()
    (memory,) = figures.pop("memory").values()
    assert rows.keys() == {*figures, *(f"memory … {name}" for name in memory)}
    expected = {**metrics.FIGURES, **{f"memory … {k}": v for k, v in metrics.OF_MEMORY.items()}}
    for key, name in rows.items():
        assert name == f"hamr_store_{expected[key].name}{'_total' * expected[key].grows}"


def test_each_name_is_known():
    found = set(re.findall(r"hamr_store_\w+", TEXT))
    assert found == known_names()


@pytest.mark.parametrize("expression", re.findall(r"expr: (.+)", TEXT))
def test_each_rule_compares_something(expression):
    assert re.search(r" (==|>|<) [\d.]+$", expression)
    assert expression.count("(") == expression.count(")")
