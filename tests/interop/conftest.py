"""The matrix's libraries, each imported when it is first used, and the record of its cells."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.interop import interop_libraries, interop_record
from tests.support import emulation

# JAX would take three quarters of a GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

HERE = Path(__file__).resolve().parent
_cells = interop_record.Cells()


@pytest.hookimpl(tryfirst=True)  # before -m chooses by the markers
def pytest_collection_modifyitems(items):
    """Run the matrix last: the libraries start threads, which do not go well with fork."""
    ours = [item for item in items if HERE in item.path.parents]
    items[:] = [item for item in items if HERE not in item.path.parents] + ours
    for item in ours:
        if emulation.CHOSEN == "driver":
            item.add_marker(pytest.mark.gpu)
            # Other libraries' warnings are not ours to mend.
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def loaded(library):
    """The library, imported and usable."""
    reason = interop_libraries.cannot_load(interop_libraries.ALL.index(library))
    if reason and library.package in os.environ.get("HAMR_TEST_REQUIRE", "").split(","):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return library


@pytest.fixture
def record():
    return _cells.add


def pytest_sessionfinish(session):
    path = os.environ.get("HAMR_INTEROP_RECORD")
    if path and _cells.rows:
        Path(path).write_text(json.dumps(_cells.result(), indent=1) + "\n")
