"""Pipelines at random on the host, beside a sequential model; with devices: tests/cuda."""

import gc
import threading
import weakref

import pytest

from tests.hetero.random_pipelines import Run, run_walk
from tests.support.processes import scaled


@pytest.mark.parametrize("seed", range(scaled(200, 20)))
def test_a_run_at_random(seed, tmp_path):
    run = Run(seed)
    engine = weakref.ref(run)
    run_walk(run, tmp_path)
    assert not [t for t in threading.enumerate() if t.name.startswith("hamr-pipeline")]
    del run
    gc.collect()
    assert engine() is None
