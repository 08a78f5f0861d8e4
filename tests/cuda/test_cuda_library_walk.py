"""Two libraries work on hamr's memory, drop it and end their streams, at random."""

from pathlib import Path

import pytest

from tests.cuda import driver
from tests.support.processes import SCALE, run_script, scaled

FOLDER = Path(__file__).parent / "scripts"
#: All of them by the long run alone.
WALKS = 10_000 if SCALE >= 1 else scaled(1000, 20)


def walk(*arguments, **settings):
    output = run_script("library_walk", *arguments, env=settings, folder=FOLDER, timeout=3000)
    assert output.endswith("OK\n"), output[-8000:]


def test_no_value_is_wrong():
    """On a real device for a minute; the script's --minutes says for how long else."""
    walk(*(["--walks", WALKS] if driver.EMULATED else ["--minutes", SCALE]))


@pytest.mark.parametrize(
    "settings",
    [{"HAMR_EMULATOR_REUSE": "1"}, {"HAMR_EMULATOR_MODE": "threads"}, {"HAMR_CUDA_POOL": "check"}],
    ids=["handles of streams come again", "work at random", "freed memory is overwritten"],
)
def test_however_the_driver_and_the_pool_act(emulator, settings):
    walk("--seed", 100_001, "--walks", WALKS // 10, **settings)


def test_with_one_device_whose_context_is_current(emulator):
    walk("--seed", 200_001, "--walks", WALKS // 10, HAMR_EMULATOR_DEVICES="1")
