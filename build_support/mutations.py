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

from build_support.marks import ROOT, MarkError, Mutation, all_marks, marks, mutated


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


def build(texts: dict[str, str]) -> str:
    """Return what the compiler says against other texts for files, each after its file's name."""
    packages = sorted({f"./{Path(file).parent}" for file in texts})
    with tempfile.TemporaryDirectory() as scratch:
        command = ["go", "build", overlay(Path(scratch), texts), *packages]
        built = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
        said = built.stderr
        for number, file in enumerate(texts):
            said = said.replace(f"{scratch}/{number}.go:", f"{file}:")
    return said if built.returncode else ""


def beside(text: str, mutation: Mutation) -> str | None:
    """Return a text with one more mutation, or None where others have changed the statement."""
    # All are read first: a mark above another one is given before its statement is known.
    found = [m for m in marks(text, mutation.file) if m.name == mutation.name]
    try:
        return mutated(found[0], text) if found else None
    except MarkError:
        return None


def build_errors(mutations: Iterable[Mutation]) -> list[str]:
    """Return what cannot be applied or does not compile, and where it is marked."""
    wrong, rounds = [], defaultdict[int, dict[str, tuple[str, list[Mutation]]]](dict)
    for mutation in mutations:
        try:
            changed_text(mutation)
        except MarkError as error:
            wrong.append(str(error))
            continue
        text = (ROOT / mutation.file).read_text()
        # One build has all mutations of a file that change statements of their own.
        for number in itertools.count():
            before, others = rounds[number].get(mutation.file, (text, []))
            if (after := beside(before, mutation)) is not None:
                rounds[number][mutation.file] = after, [*others, mutation]
                break
    for chosen in rounds.values():
        if not build({file: text for file, (text, _) in chosen.items()}):
            continue
        for mutation in (m for _, together in chosen.values() for m in together):
            if said := build({mutation.file: changed_text(mutation)}):
                wrong.append(f"{mutation.where}: {mutation.name}: {said}")
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
