"""Moves of all kinds that overlap, in several threads, and with a driver that fails at random."""

from pathlib import Path

import pytest

from tests.support.processes import run_script, scaled

FOLDER = Path(__file__).parent / "scripts"
#: So that a few elements are several chunks, and few chunks are all that there are.
STAGED = {"HAMR_COPY_CHUNK": "4096", "HAMR_COPY_THREADS": "2", "HAMR_PINNED_LIMIT": "32768"}


def run(kind, seed, steps, **settings):
    output = run_script("stress_copies", kind, seed, steps, env=settings, folder=FOLDER)
    assert output.endswith("OK\n"), output[-4000:]


@pytest.mark.parametrize(
    "settings",
    [STAGED, STAGED | {"HAMR_EMULATOR_MODE": "threads"}, {}, {"HAMR_CUDA_POOL": "check"}],
    ids=["staged", "staged, and work at random", "as it is", "freed memory is overwritten"],
)
def test_every_byte_arrives(settings):
    run("walk", len(settings), scaled(10_000, 100) // 4, **settings)


@pytest.mark.parametrize("settings", [STAGED, {}], ids=["staged", "as it is"])
def test_whatever_fails_is_told_of_and_nothing_is_lost(emulator, settings):
    run("faults", len(settings), scaled(2000, 100), **settings)


@pytest.mark.parametrize("settings", [{}, {"HAMR_CUDA_POOL": "check"}], ids=["as it is", "check"])
def test_a_few_elements_go_the_short_way_or_the_long_one(settings):
    steps = scaled(10_000, 100)
    output = run_script("short_ways", len(settings), steps, env=settings, folder=FOLDER)
    assert output.endswith("OK\n"), output[-4000:]
