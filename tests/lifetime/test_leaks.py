"""Long repetition leaves resident memory and every counter where they were."""

import pytest

from tests.support.processes import run_script, scaled


@pytest.mark.parametrize(
    ("case", "cycles", "threads"),
    [
        ("create", 1_000_000, 8),
        ("create_cpp", 200_000, 8),
        ("adopt", 1_000_000, 8),
        ("dlpack_taken", 100_000, 4),
        ("handles", 300_000, 8),
        ("slices", 100_000, 2),
        ("interface", 100_000, 2),
        ("arrow", 200_000, 4),
        ("contents", 100_000, 4),
        ("pickles", 100_000, 2),
        ("pickles_out_of_band", 20_000, 2),
        ("subclasses", 30_000, 2),
        ("dlpack", 1_000_000, 4),
        ("dlpack_deleted", 50_000, 2),
        ("dlpack_exchanged", 50_000, 2),
        ("errors", 3_100, 2),  # each cycle fails in more than 32 ways
    ],
)
def test_nothing_is_left(case, cycles, threads):
    """scripts/leaks.py says what a cycle does, and how much growth is let pass."""
    print(run_script("leaks", case, scaled(cycles, min(1000, cycles // 10)), threads, timeout=300))
