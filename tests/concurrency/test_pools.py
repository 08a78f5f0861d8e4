"""Pools of multiprocessing, and memory that is gone when it is to be opened."""

import pytest

from tests.support.processes import run_script


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_does_not_wait_for_what_cannot_be_opened(method, tmp_path):
    """Arguments and results: the error comes at the first use."""
    assert "all refused" in run_script("lost_in_pools", method, tmp_path, timeout=60)
