"""What is rewritten when the Go module gets another path, and what only looks like it."""

import subprocess
import sys

import pytest

from build_support import module_path, toolchain
from tests.support.paths import ROOT

FOLDERS = ["backends", "gobuffer", "internal", "store"]
NEW = "github.com/someone/hamr"


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.go", '\t"hamr/store"\n', f'\t"{NEW}/store"\n'),
        ("a.go", '\t_ "hamr/backends/all" // x\n', f'\t_ "{NEW}/backends/all" // x\n'),
        ("a.go", "//go:generate go run hamr/internal/x", f"//go:generate go run {NEW}/internal/x"),
        ("a.md", "`go doc hamr/store`. The next.", f"`go doc {NEW}/store`. The next."),
        ("a.md", "see hamr/store.", f"see {NEW}/store."),
        ("a.go", '// #include "hamr/store.h"', '// #include "hamr/store.h"'),
        ("a.go", '// #include "hamr/store_interface.h"', '// #include "hamr/store_interface.h"'),
        ("a.go", "// hamr/store.sock in /tmp/hamr/store", "// hamr/store.sock in /tmp/hamr/store"),
        ("a.md", "python/hamr/store, $X/hamr/store", "python/hamr/store, $X/hamr/store"),
        ("a.md", "hamr/types, `hamr`", "hamr/types, `hamr`"),
        ("go.mod", "module hamr\n\ngo 1.26\n", f"module {NEW}\n\ngo 1.26\n"),
        ("examples/a/go.mod", "require hamr v0.0.0\n", f"require {NEW} v0.0.0\n"),
        ("examples/a/go.mod", "require (\n\thamr v0.0.0\n", f"require (\n\t{NEW} v0.0.0\n"),
        ("examples/a/go.mod", "replace hamr => ../..\n", f"replace {NEW} => ../..\n"),
        ("examples/a/go.mod", "module example.com/hamr\n", "module example.com/hamr\n"),
        ("internal/lint/a.go", '\tmodule    = "hamr"\n', f'\tmodule    = "{NEW}"\n'),
        ("internal/a.go", 'f("hamr/"+folder)', f'f("{NEW}/"+folder)'),
        ("a.go", "go mod edit -replace hamr=/where", f"go mod edit -replace {NEW}=/where"),
    ],
)  # fmt: skip
def test_what_is_rewritten(name, text, wanted):
    assert module_path.rewrite(text, name, "hamr", NEW, FOLDERS) == wanted
    # And back, as a path with dots is.
    assert module_path.rewrite(wanted, name, NEW, "hamr", FOLDERS) == text


@pytest.mark.parametrize("path", ["hamr", "github.com", "https://a.org/b", "a.b/c d", "a.b/"])
def test_what_is_no_path(path):
    command = [sys.executable, "-m", "build_support.module_path", path]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert f"the path is {path!r}" in done.stderr


def test_folders_are_those_with_go(tmp_path):
    for name in ("gobuffer/a.go", "examples/b/a.go", "python/a.py", "a.go"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert module_path.folders(tmp_path) == ["gobuffer"]


def test_what_is_left_is_found(tmp_path):
    (tmp_path / "go.mod").write_text("module hamr\n\ngo 1.26.0\n")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.go").write_text('package store\n\nimport _ "hamr/store/x"\n')
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert module_path.left(tmp_path, "hamr") == [("store/a.go", 'import _ "hamr/store/x"')]
    assert toolchain.go_module(tmp_path) == "hamr"
