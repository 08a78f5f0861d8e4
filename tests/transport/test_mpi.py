"""Buffers and handles in the messages of mpi4py, between real ranks."""

import pytest

from tests.support import mpi
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.skipif(mpi.MISSING is not None, reason=str(mpi.MISSING)),
]


def test_messages():
    """scripts/mpi_messages.py says what each case shows."""
    output = mpi.run_ranks("mpi_messages.py", 4)
    assert output.endswith("OK\n")


def test_the_example():
    output = mpi.run_ranks(ROOT / "examples" / "mpi_allreduce.py", 3)
    assert output == "the mean of 3 ranks: [1. 1. 1. 1. 1. 1. 1. 1.]\nin place: 3.0\n"
