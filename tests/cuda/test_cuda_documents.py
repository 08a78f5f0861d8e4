"""The code blocks of README.md and docs that need a CUDA device, and examples that take any.

tests/support/documents.py says how the blocks run.
"""

import shutil

import pytest

from tests.package.test_examples import run_example
from tests.support import documents

HERE = [group for group in documents.GROUPS if group.needs & documents.ON_A_DEVICE]


@pytest.mark.parametrize("group", HERE, ids=str)
def test_blocks(group, tmp_path):
    reason = group.missing()
    assert not reason, reason
    documents.run(group, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "simulation.py",
            marks=pytest.mark.skipif(not shutil.which("cc"), reason="no cc, which it runs"),
        ),
        "threads.py",
        "hello.py",
    ],
)
def test_examples_that_run_anywhere_run_on_a_device(name, tmp_path):
    run_example(name, tmp_path)
