"""The examples that are written in cells are notebooks, too, which say the same.

make docs installs what runs them.
"""

import pytest

from build_support import notebooks
from tests.package.test_examples import OUTPUT
from tests.support.paths import ROOT

jupytext = pytest.importorskip("jupytext")


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_notebook_has_all_of_its_script(name):
    script = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    cells = notebooks.notebook(name).cells
    assert cells[0].cell_type == "markdown"
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    written = [line for line in script.split("\n") if line and not line.startswith("#")]
    assert [line for line in code.split("\n") if line] == written
    assert all(not cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_notebook_runs(name):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if notebooks.absent(name):
        pytest.skip(notebooks.absent(name))
    told = notebooks.execute(name)
    for line in OUTPUT.get(name + ".py", ["a result: {10, 10"]):
        assert line in told
