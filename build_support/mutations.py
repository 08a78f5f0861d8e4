"""Show that the tests notice each change that a mark in the Go code names.

python -m build_support.mutations [NAME...]

Each mutation changes one statement, as its mark says (see marks.py), by an overlay, so
that no file changes. It must be caught: one that no test notices makes the exit status 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from build_support.marks import ROOT, MarkError, Mutation, all_marks, mutated


def first_failure(mutation: Mutation, text: str) -> str | None:
    """Return the name of the test that notices, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        changed, overlay = Path(scratch) / "changed.go", Path(scratch) / "overlay.json"
        changed.write_text(text)
        overlay.write_text(json.dumps({"Replace": {str(ROOT / mutation.file): str(changed)}}))
        command = ["go", "test", "-vet=off", "-failfast", "-timeout=5m", f"-overlay={overlay}"]
        command.append("-skip=Cost")  # they notice any change, which proves nothing
        done = subprocess.run(
            [*command, mutation.tests], cwd=ROOT, text=True, capture_output=True, check=False
        )
    output = done.stdout + done.stderr
    if "[build failed]" in output or "[setup failed]" in output:
        sys.exit(f"{mutation.where}: {mutation.name}: does not compile\n{output}")
    if done.returncode == 0:
        return None
    failed = re.findall(r"^\s*--- FAIL: (\S+)", output, re.MULTILINE)
    crashed = re.findall(r"^panic: (.*)", output, re.MULTILINE)
    return (
        max(failed, key=len) if failed else f"a crash: {crashed[0] if crashed else output[-300:]}"
    )


def main() -> int:
    """Test each mutation, or those named."""
    try:
        chosen = [m for m in all_marks() if not sys.argv[1:] or m.name in sys.argv[1:]]
        texts = [mutated(m, (ROOT / m.file).read_text()) for m in chosen]
    except MarkError as error:
        sys.exit(str(error))
    survived = 0
    for mutation, text in zip(chosen, texts, strict=True):
        test = first_failure(mutation, text)
        survived += test is None
        print(f"{mutation.name}: {f'caught by {test}' if test else 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return int(survived > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
