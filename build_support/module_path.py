"""Give the Go module another path, by which others can go get it.

python -m build_support.module_path github.com/OWNER/hamr

go.mod alone names the path for the build; Go's own files name it in imports, documents in
programs. All of these are rewritten, and formatted anew.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from build_support import toolchain

#: As Go has it: elements of these characters, the first of which has a dot.
FORM = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+")
ENDINGS = (".go", ".md", ".py", ".mod")
#: Records of what was, and this program's own words.
LEFT = ("CHANGELOG.md", "build_support/module_path.py", "tests/package/test_module_path.py")


def folders(root: Path) -> list[str]:
    """Return the folders of the tree that hold Go packages, the module's outermost ones."""
    listed = toolchain.run(["git", "ls-files", "*.go"], cwd=root).split()
    return sorted({name.partition("/")[0] for name in listed if "/" in name} - {"examples"})


def pattern(module: str, names: list[str]) -> re.Pattern[str]:
    """Return what finds the path of one of the module's packages, and no file's name."""
    either = "|".join(map(re.escape, names))
    return re.compile(
        rf"(?<![\w./$~-]){re.escape(module)}(?=/(?:{either})(?!\w|\.(?:h|hpp|sock)\b))"
    )


def rewrite(text: str, name: str, module: str, new: str, names: list[str]) -> str:
    """Return a file of the tree with another module path."""
    text = pattern(module, names).sub(new, text)
    own = re.escape(module)
    if name.endswith("go.mod"):
        text = re.sub(rf"^(module|require|replace) {own}(?= |$)", rf"\1 {new}", text, flags=re.M)
        text = re.sub(rf"^\t{own}(?= )", f"\t{new}", text, flags=re.M)
    if name.startswith("internal/") and name.endswith(".go"):
        # What reads the tree names the module by itself.
        text = re.sub(rf'^(\s*module\s+= )"{own}"$', rf'\1"{new}"', text, flags=re.M)
        text = text.replace(f'"{module}/"+', f'"{new}/"+')
    return re.sub(rf"(go mod edit -(?:replace|require)[ =]){own}(?=[=@])", rf"\1{new}", text)


def texts(root: Path) -> list[tuple[str, str]]:
    """Return the names and contents of the files that may name the module."""
    found = []
    for name in toolchain.run(["git", "ls-files"], cwd=root).splitlines():
        if name.endswith(ENDINGS) and name not in LEFT and (root / name).is_file():
            found.append((name, (root / name).read_text(encoding="utf-8")))
    return found


def change(root: Path, new: str) -> list[str]:
    """Rewrite a tree, of which git keeps the list; return the files that have changed."""
    module, names = toolchain.go_module(root), folders(root)
    changed = []
    for name, text in texts(root):
        if (other := rewrite(text, name, module, new, names)) != text:
            (root / name).write_text(other, encoding="utf-8")
            changed.append(name)
    # Imports are in order of their paths.
    if go := [name for name in changed if name.endswith(".go")]:
        toolchain.run(["gofmt", "-w", *go], cwd=root)
    return changed


def left(root: Path, module: str) -> list[tuple[str, str]]:
    """Return the lines of a tree that still name a module's packages, with their files."""
    found = pattern(module, folders(root))
    lines = [(name, line) for name, text in texts(root) for line in text.splitlines()]
    return [(name, line) for name, line in lines if found.search(line)]


def main() -> int:
    """Rewrite the tree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", help="as github.com/OWNER/hamr")
    parser.add_argument("--root", type=Path, default=toolchain.ROOT, help="another copy of it")
    options = parser.parse_args()
    if not FORM.fullmatch(options.path):
        parser.error(f"the path is {options.path!r}: accepted is one as github.com/OWNER/hamr")
    old = toolchain.go_module(options.root)
    changed = change(options.root, options.path)
    print(f"{old} is {options.path} now, in {len(changed)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
