"""Show that the tests notice each change that a mark in the Go code names.

python -m build_support.mutations [NAME...]

Each mutation changes one statement, as its mark says (see marks.py), by an overlay, so
that no file changes. It must be caught: one that no test notices makes the exit status 1.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from build_support.marks import ROOT, MarkError, Mutation, all_marks, mutated


def changed_text(mutation: Mutation) -> str:
    """Return the text of the mutation's file with it."""
    return mutated(mutation, (ROOT / mutation.file).read_text())


def overlay(scratch: Path, texts: dict[str, str]) -> str:
    """Return the option by which Go takes other texts for files."""
    changed = {}
    for number, (file, text) in enumerate(texts.items()):
        changed[str(ROOT / file)] = str(scratch / f"{number}.go")
        (scratch / f"{number}.go").write_text(text)
    (scratch / "overlay.json").write_text(json.dumps({"Replace": changed}))
    return f"-overlay={scratch / 'overlay.json'}"


def build_errors(mutations: Iterable[Mutation]) -> list[str]:
    """Return what cannot be applied or does not compile, and where it is marked."""
    wrong, rounds = [], defaultdict[int, dict[str, tuple[Mutation, str]]](dict)
    for mutation in mutations:
        try:
            text = changed_text(mutation)
        except MarkError as error:
            wrong.append(str(error))
            continue
        # Each build has one mutation of each file.
        number = next(n for n in itertools.count() if mutation.file not in rounds[n])
        rounds[number][mutation.file] = mutation, text
    for chosen in rounds.values():
        with tempfile.TemporaryDirectory() as scratch:
            option = overlay(Path(scratch), {file: text for file, (_, text) in chosen.items()})
            packages = sorted({f"./{Path(file).parent}" for file in chosen})
            built = subprocess.run(
                ["go", "build", option, *packages],
                cwd=ROOT,
                text=True,
                capture_output=True,
                check=False,
            )
            for number, (mutation, _) in enumerate(chosen.values()):
                found = re.findall(rf"{re.escape(scratch)}/{number}\.go:(.*)", built.stderr)
                wrong += [f"{mutation.where}: {mutation.name}: {each}" for each in found]
        if built.returncode and not wrong:
            wrong.append(built.stderr)
    return wrong


def first_failure(mutation: Mutation) -> str | None:
    """Return the name of the test that notices, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        option = overlay(Path(scratch), {mutation.file: changed_text(mutation)})
        command = ["go", "test", "-vet=off", "-failfast", "-timeout=5m", option]
        command.append("-skip=Cost")  # they notice any change, which proves nothing
        done = subprocess.run(
            [*command, mutation.tests], cwd=ROOT, text=True, capture_output=True, check=False
        )
    output = done.stdout + done.stderr
    if "[build failed]" in output or "[setup failed]" in output:
        sys.exit(f"{mutation.where}: {mutation.name}: its tests do not compile\n{output}")
    if done.returncode == 0:
        return None
    failed = re.findall(r"^\s*--- FAIL: (\S+)", output, re.MULTILINE)
    crashed = re.findall(r"^panic: (.*)", output, re.MULTILINE)
    return (
        max(failed, key=len) if failed else f"a crash: {crashed[0] if crashed else output[-300:]}"
    )


def main() -> int:
    """Test each mutation, or those named."""
    chosen = [m for m in all_marks() if not sys.argv[1:] or m.name in sys.argv[1:]]
    if wrong := build_errors(chosen):
        sys.exit("\n".join(wrong))
    survived = 0
    for mutation in chosen:
        test = first_failure(mutation)
        survived += test is None
        print(f"{mutation.name}: {f'caught by {test}' if test else 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return int(survived > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
