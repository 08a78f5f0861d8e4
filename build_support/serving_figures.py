"""The figures of docs/guides/serving.md, from recorded walks.

python -m build_support.serving_figures [--check]

The walks are ``python -m tests.store.weights_walk --json docs/results/weights-host.json`` and, on a
GPU, ``--device 0 --size 4GiB --json docs/results/weights-h200.json``.
"""

from __future__ import annotations

import sys
from typing import Any

from build_support.figures import ROOT, rewrite

PAGE = ROOT / "docs" / "guides" / "serving.md"
RUNS = {"on a GPU": "weights-h200.json", "on the host": "weights-host.json"}
#: Who counts the bytes.
COUNTS = {
    "server": "by the server's figures",
    "files in memory": "by the kernel: files in memory",
    "device, by the driver, with contexts": "by the driver, with the contexts of three processes",
}
#: What the page shows of a walk's times, and in which words.
TIMES = {
    "the service started: all programs work": "from the start of all to products of both workers",
    "loader killed: first right product of any worker": "loader killed: to the next right product",
    "server killed: first right product of any worker": "server killed: to the next right product",
    "worker killed: first right product of any worker": "worker killed: to that of either worker",
    "worker killed: first right product of its own": "worker killed: to its own",
    "loader killed: all programs work": "loader killed: until all work",
    "server killed: all programs work": "server killed: until all work",
    "all killed, and the loader again: all programs work": "all killed, and the loader once more "
    "while it loads: until all work",
    "a new version: both workers use it": "from SIGHUP to products of the new version by both",
}


def table(record: dict[str, Any]) -> str:
    """A walk as Markdown: what it ran on, the bytes, and the times."""
    machine, size = record["machine"], record["weights_bytes"]
    where = machine["gpus"][0] if record["device"] != "host" else f"{machine['cores']} cores"
    head = (
        f"{where}, {machine['date'][:10]}: weights of {size / (1 << 30):g} GiB, {record['rounds']} "
        f"rounds with {record['killed']} kills. In these rounds the file was loaded once."
    )
    rows = ["| bytes, of one copy | all at work | at most |", "|---|--:|--:|"]
    for kind, nbytes in record["bytes_at_rest"].items():
        most = record["bytes_at_most"][kind]
        if nbytes or most:
            rows.append(f"| {COUNTS[kind]} | {nbytes / size:.3f} | {most / size:.3f} |")
    rows += ["", "| seconds | median | longest |", "|---|--:|--:|"]
    for what, words in TIMES.items():
        if what in record["times"]:
            took = record["times"][what]
            rows.append(f"| {words} | {took['median_s']:.3f} | {took['most_s']:.3f} |")
    return "\n".join([head, "", *rows])


def main() -> int:
    """Rewrite the page; with --check only say whether it is as the results."""
    return rewrite(PAGE, RUNS, table, "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
