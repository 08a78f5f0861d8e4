"""The code blocks of README.md and docs that need a CUDA device, and examples that take any.

tests/support/documents.py says how the blocks run.
"""

import shutil

import pytest

from tests.package.test_examples import run_example
from tests.support import documents


@pytest.mark.parametrize("group", documents.parameters(on_a_device=True))
def test_blocks(group, tmp_path):
    documents.run(group, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "simulation.py",
            marks=pytest.mark.skipif(not shutil.which("cc"), reason="no cc, which it runs"),
        ),
        "threads.py",
        "event_pipeline.py",
        "store.py",
        "paged_cache.py",
        "hello.py",
        "in_situ_plot.py",
        "two_processes.py",
    ],
)
def test_examples_that_run_anywhere_run_on_a_device(name, tmp_path):
    run_example(name, tmp_path)
