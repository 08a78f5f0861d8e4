"""``hamr bench --only store-cuda`` with a device: another process has the bytes."""

import json
import shutil
import socket

import pytest

from hamr import cli
from hamr._benchmark import bare_hand_over, bare_object, hand_over_parts, hand_over_ways, store_cuda
from hamr._benchmark.children import Child
from hamr._benchmark.driver import Driver
from hamr._benchmark.groups import Libraries, Settings

OURS = "hamr: seal, pipe, "


def test_the_rows(tmp_path):
    path = tmp_path / "figures.json"
    small = ["--quick", "--largest", "1MiB", "--rounds", "1", "--json", str(path)]
    assert cli.main(["bench", "--only", "store-cuda", *small]) == 0
    record = json.loads(path.read_text())
    assert record["skipped"] == []
    single, at_once, bare, of_object, *in_parts, spilled = record["groups"]
    assert single["group"] == "hand 1 MiB of CUDA over to another process"
    assert at_once["group"] == f"{single['group']}, and at once another"
    compiles = shutil.which("cc") or shutil.which("gcc")
    for group in (single, at_once):
        first, pooled, plain, *_ = group["rows"]
        assert first["operation"].startswith(OURS)
        assert "error" not in first
        assert first["value"] > 0
        assert "limit" not in first
        assert "of cuda_async's pool" in pooled["operation"]
        assert pooled["met"] is (pooled["value"] <= pooled["limit"] == 60)
        assert plain["value"] > 0
        alone = {row["operation"]: row for row in group["rows"][-2:]}
        assert alone[store_cuda.BARE]["value"] > 0
        if compiles:
            assert alone[store_cuda.BARE_OBJECT]["value"] > 0
    check_bare(bare["rows"])
    if compiles:
        *steps, total = of_object["rows"]
        assert len(steps) == 6
        assert all(row["value"] > 0 for row in steps)
        assert total["value"] > max(row["value"] for row in steps)
    assert "to a file and back" in spilled["group"]
    back, there = spilled["rows"][:2]
    assert back["value"] > there["value"] > 0
    for kind, each in zip(("cuda_async", "cuda", "the store"), in_parts, strict=True):
        assert each["group"].startswith("the steps of ")
        assert each["group"].endswith(f" of 1 MiB of {kind}")
        alone, *steps, total = each["rows"]
        assert alone["operation"] == hand_over_parts.ALONE
        assert all(row["value"] > 0 for row in (alone, *steps))
        assert total["value"] > max(row["value"] for row in steps)


def check_bare(rows):
    """Single ones and those right after the other, of three steps and their sum each."""
    assert len(rows) == 8
    for *steps, total in (rows[:4], rows[4:]):
        assert all(row["value"] > 0 for row in steps)
        assert total["operation"].startswith("sum, ")
        assert total["value"] > max(row["value"] for row in steps)


def test_the_driver_alone_without_a_compiler(monkeypatch):
    """Then ctypes calls it, and the rows say so."""
    with bare_hand_over.calls() as (by, library):
        assert by == ("compiled C" if library else "ctypes")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    rows = bare_hand_over.rows(4096, 3)
    check_bare(rows)
    assert [row["operation"].partition(", ")[2] for row in rows[:4]] == ["by ctypes"] * 4


def test_an_object_without_a_compiler(monkeypatch):
    """Nothing stands for a server then, and the rows say so."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RuntimeError, match="no C compiler"):
        bare_object.rows(4096, 1)


def test_wrong_bytes_of_the_driver_alone_are_an_error(monkeypatch):
    """The receiver checks what it has."""
    monkeypatch.setattr(bare_hand_over, "between", unlike)
    with pytest.raises(RuntimeError, match="it ended"):
        bare_hand_over.rows(4096, 1)


def unlike(module, arguments, settings):
    """Its processes, of which the second one is told of more bytes than the first."""
    nbytes, *rest = arguments
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        ends = {"receive": (far, 2 * nbytes), "send": (near, nbytes)}
        children = [
            Child.of(f"{module}.child_{name}", end.fileno(), size, *rest, sockets=[end.fileno()])
            for name, (end, size) in ends.items()
        ]
    try:
        for child in children:
            child.line()
        children[1].tell("go")
        children[0].line()
    finally:
        for child in children:
            child.end()


def test_wrong_bytes_are_an_error(monkeypatch):
    """The receiver checks what it has."""
    monkeypatch.setattr(hand_over_ways, "FILL", 8)
    lib = Libraries(Settings(quick=True, largest=4096), load=False)
    rows, *_ = store_cuda.hand_over(lib, Driver())
    row = rows.measure(lambda: None)["rows"][0]
    assert "it ended" in row["error"]
    assert "value" not in row


@pytest.mark.parametrize("bound", store_cuda.LIMITS)
def test_a_size_for_each_limit(bound):
    lib = Libraries(Settings(largest=bound), load=False)
    titles = [item.title for item in store_cuda.hand_over(lib, None)]
    sizes = sum(n <= bound for n in store_cuda.LIMITS)
    ways_in_parts, alone = 4, 2  # an object's among the ways; the driver, and what is spilled
    assert len(titles) == len(set(titles)) == sizes * (2 + ways_in_parts) + alone
