"""The tables of docs/sharing.md are those of the recorded runs."""

import json

from build_support import sharing_table
from build_support.figures import RESULTS

WAYS = ("client.get", "open_shared", "CuPy", "torch")
STEPS = ("a message of as many bytes alone", "asarray", "sum")

DRIVER = ("cuMemPoolExportPointer", "sendmsg", "cuMemPoolImportPointer", "sum")
OBJECT = ("cuMemSetAccess", "the server is told", "cuMemImportFromShareableHandle", "sum")
OF = {
    "the steps of ": STEPS,
    "the driver and one message alone": DRIVER,
    "the driver and five messages alone": OBJECT,
    "hand ": WAYS,
    "64 MiB of CUDA, for which a store has no room": ("which is spilled", "tofile"),
}


def test_the_page_is_what_the_run_says(monkeypatch):
    monkeypatch.setattr("sys.argv", ["sharing_table", "--check"])
    assert sharing_table.main() == 0


def test_the_run_has_each_way_and_no_errors():
    for name in sharing_table.RUNS.values():
        run = json.loads((RESULTS / name).read_text())
        assert run["machine"]["gpus"]
        assert run["machine"]["commit"]
        for group in run["groups"]:
            said = " ".join(row["operation"] for row in group["rows"])
            (ways,) = (each for start, each in OF.items() if group["group"].startswith(start))
            assert all(way in said for way in ways), group["group"]
            for row in group["rows"]:
                assert "error" not in row
                if "met" in row:
                    assert row["met"] is (row["value"] <= row["limit"])
