"""What tests/gpu/run_all.py reads of compute-sanitizer's reports."""

import re

import pytest

from tests.gpu import outcomes, run_all
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("report", "errors", "lines"),
    [
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0, 1),
        ("========= ERROR SUMMARY: 1 error\n", 1, 1),
        (
            "========= LEAK SUMMARY: 96 bytes leaked in 2 allocations\n"
            "========= ERROR SUMMARY: 12 errors\n",
            12,
            2,
        ),
        ("========= COMPUTE-SANITIZER\n========= Invalid __global__ read of size 4\n", None, 0),
        ("", None, 0),
    ],
)
def test_errors_are_counted(report, errors, lines):
    found = outcomes.findings(report)
    assert found["errors"] == errors
    assert len(found["summaries"]) == lines


def test_what_is_left_out_is_there():
    files = [
        path for pattern in ("gpu", "cuda") for path in (ROOT / "tests" / pattern).glob("test_*.py")
    ]
    tests = "".join(path.read_text() for path in files)
    for name in (*run_all.NOT_CHECKED, *run_all.NOT_CHECKED_OF_PYGPU):
        is_test = re.search(rf"^(async )?def \w*{name}", tests, re.MULTILINE)
        assert is_test or name in [path.stem for path in files], name
