"""Type checkers on right.py and wrong.py: python -m tests.typing.checkers runs those installed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILES = {"right": HERE / "right.py", "wrong": HERE / "wrong.py"}

#: What each checker is, as a module of this Python. basedpyright is pyright with its own Node.
CHECKERS = {"mypy": ["mypy"], "pyright": ["pyright", "basedpyright"]}


def module_of(checker: str) -> str | None:
    """The installed module that is a checker; None if there is none."""
    return next((m for m in CHECKERS[checker] if importlib.util.find_spec(m)), None)


def expected(file: Path) -> set[int]:
    """The lines that are marked."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {i for i, line in enumerate(lines, 1) if line.endswith("# expect: error")}


def reported(checker: str, file: Path) -> dict[int, str]:
    """The lines in which a checker finds errors, and what it says, about the package's sources."""
    module = module_of(checker)
    assert module is not None
    with tempfile.TemporaryDirectory() as folder:
        return (_by_mypy if checker == "mypy" else _by_pyright)(module, file, Path(folder))


def _by_mypy(module: str, file: Path, folder: Path) -> dict[int, str]:
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT / 'python'}\n")
    command = ["--config-file", config, "--cache-dir", folder, "--no-error-summary", file]
    output = _run(module, *map(str, command))
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", output, re.MULTILINE)
    assert not found or {name for name, *_ in found} == {file.name}, output
    return {int(line): message for _, line, message in found}


def _by_pyright(module: str, file: Path, folder: Path) -> dict[int, str]:
    config = folder / "pyrightconfig.json"
    settings = {
        "include": [os.path.relpath(file, folder)],  # pyright takes no other
        "extraPaths": [str(ROOT / "python")],
        "typeCheckingMode": "standard",
        "reportAttributeAccessIssue": "error",
    }
    config.write_text(json.dumps(settings))
    python = ["--pythonpath", sys.executable]
    output = _run(module, "--project", str(config), "--outputjson", *python)
    told = json.loads(output[output.index("{") :])
    errors = [d for d in told["generalDiagnostics"] if d["severity"] == "error"]
    assert told["summary"]["filesAnalyzed"], output
    return {d["range"]["start"]["line"] + 1: d["message"] for d in errors}


def _run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, text=True, capture_output=True, check=False, cwd=HERE, env={**os.environ}
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def main() -> int:
    status = 0
    for checker in CHECKERS:
        if module_of(checker) is None:
            print(f"{checker} on tests/typing: left out, it is not installed")
            continue
        for name, file in FILES.items():
            found, wanted = reported(checker, file), expected(file)
            for line in sorted(found.keys() ^ wanted):
                print(f"{file}:{line}: {checker} says: {found.get(line, 'nothing')}")
                status = 1
            print(f"{checker} on {name}.py: {len(found)} errors, {len(wanted)} expected")
    return status


if __name__ == "__main__":
    sys.exit(main())
