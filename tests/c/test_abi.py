"""Programs that were compiled before go on working: abi.txt holds what they rely on."""

import shutil

import pytest

from tests.c import abi
from tests.support.c_programs import COMPILER

HOW = "python -m tests.c.abi > tests/c/abi.txt records them"


def compare(found: list[str], recorded: list[str]) -> None:
    gone = [line for line in recorded if line not in found]
    assert not gone, f"compiled programs rely on {gone}: new functions go to the table's end"
    assert [line for line in found if line in recorded] == recorded, "the order has changed"
    new = [line for line in found if line not in recorded]
    assert not new, f"{new} are not in abi.txt: if they are to be for ever, {HOW}"


def recorded(symbols: bool) -> list[str]:
    lines = abi.RECORD.read_text().splitlines()
    return [line for line in lines if line.startswith("symbol ") is symbols]


@pytest.mark.skipif(not shutil.which("nm"), reason="no nm")
def test_exported_symbols():
    compare(abi.symbols(), recorded(True))


@pytest.mark.skipif(not COMPILER, reason="no C compiler")
def test_layouts_and_the_order_of_the_table():
    compare(abi.layouts(), recorded(False))


def test_a_change_is_noticed():
    lines = recorded(False)
    for changed in (lines[:-1], [*lines, "new"], [lines[1], lines[0], *lines[2:]]):
        with pytest.raises(AssertionError):
            compare(changed, lines)
