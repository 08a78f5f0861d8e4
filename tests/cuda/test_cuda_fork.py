"""Children of processes that use CUDA, and of those that do not yet."""

from pathlib import Path

import pytest

from tests.support.processes import run_script

SCRIPTS = Path(__file__).resolve().parent / "scripts"


@pytest.mark.parametrize(
    "case",
    [
        "device_buffers", "host_buffers", "pending_host_buffers", "new_use_in_the_child", "exits",
        "before_use", "in_finalisers", "in_a_temporary", "in_an_exporter", "in_threads", "spawns",
    ],
)  # fmt: skip
def test_case(case):
    """Each case is a function of scripts/cuda_forks.py, which says what it shows."""
    output = run_script("cuda_forks", case, folder=SCRIPTS)
    assert output.endswith("done\n")
