"""Notebooks of the examples that are written in cells.

The scripts are the source; notebooks are made of them and kept nowhere.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("in_situ_plot", "two_libraries", "two_processes", "dask_cluster")
#: What an example cannot do without.
NEEDS = {"dask_cluster": "distributed"}
#: Seconds that a cell may take, on a machine that others use, too.
LIMIT = 300


def notebook(name: str) -> Any:
    """Return the notebook of an example, without outputs."""
    import jupytext

    made = jupytext.read(ROOT / "examples" / f"{name}.py", fmt="py:percent")
    made.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"  # the same at each build
    return made


def made() -> dict[str, str]:
    """Return all notebooks as texts, by name."""
    import jupytext

    return {name: jupytext.writes(notebook(name), fmt="ipynb") for name in NAMES}


def absent(name: str) -> str:
    """Return why an example cannot run here, or ""."""
    module = NEEDS.get(name)
    return f"no {module}" if module and importlib.util.find_spec(module) is None else ""


def execute(name: str) -> str:
    """Run a notebook, and return what its cells printed; what a cell raises is raised."""
    from nbclient import NotebookClient

    found = notebook(name)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(found, timeout=LIMIT, kernel_name="python3", resources=resources).execute()
    return "".join(
        output.text
        for cell in found.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream"
    )
