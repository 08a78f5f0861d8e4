"""Make a release and stop before anybody else has it.

python -m build_support.release [--checks TARGET] [--output FOLDER]

The version is pyproject.toml's, the notes are its section of CHANGELOG.md. A tree with changes, a
section that is missing or unreleased, a tag that is there, a commit that 'make bare' has not run,
and checks that fail end it, in that order, with nothing made. Wheels, source archives, notes and
checksums go to dist/VERSION; the tag comes last. What would upload them is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from build_support import bare, source_archive, toolchain, versions

HEADING = re.compile(r"^## (\S+)(?: \((.*)\))?$", re.MULTILINE)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
CHANGES = toolchain.ROOT / "CHANGELOG.md"
SUMS = "SHA256SUMS"


def git(*arguments: str) -> str:
    """Return what git prints of this tree."""
    return toolchain.run(["git", *arguments]).strip()


def notes(text: str, version: str) -> str:
    """Return a version's section of CHANGELOG.md; it has to have a date and some words."""
    found = [heading for heading in HEADING.finditer(text) if heading[1] == version]
    if len(found) != 1:
        toolchain.fail(
            f"CHANGELOG.md has {len(found)} sections of version {version}: one is wanted"
        )
    if not DATE.fullmatch(found[0][2] or ""):
        toolchain.fail(
            f"CHANGELOG.md says {found[0][0]!r}: a release has a date, "
            f"as '## {version} (2030-01-31)'"
        )
    following = HEADING.search(text, found[0].end())
    body = text[found[0].end() : following.start() if following else len(text)].strip()
    if not body:
        toolchain.fail(f"CHANGELOG.md says nothing of version {version}")
    return body + "\n"


def refuse_changes() -> None:
    """End the release if the tree is not what is committed."""
    if changed := git("status", "--porcelain"):
        toolchain.fail(f"the tree is not what is committed:\n{changed}")


def refuse_tag(tag: str) -> None:
    """End the release if the tag is there, here or where the commits are pushed to."""
    if git("tag", "--list", tag):
        toolchain.fail(
            f"the tag {tag} is there: a release is made once, the next has a new version"
        )
    for remote in git("remote").split():
        command = ["git", "ls-remote", "--tags", remote, f"refs/tags/{tag}"]
        env = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        if toolchain.run(command, env=env).strip():
            toolchain.fail(
                f"the tag {tag} is there in {remote}: the next release has a new version"
            )


def build(folder: Path) -> None:
    """Build wheels and source archives, dated by the commit."""
    os.environ["SOURCE_DATE_EPOCH"] = git("log", "-1", "--format=%ct")
    command = [sys.executable, "-m", "build_support.wheels", "--output", str(folder)]
    if subprocess.run(command, cwd=toolchain.ROOT, check=False).returncode:
        toolchain.fail("the wheels are not as they should be")
    for vendor in (False, True):
        source_archive.build(folder, vendor)
    archives = [str(path) for path in sorted(folder.glob("*.tar.gz"))]
    toolchain.run([sys.executable, "-m", "twine", "check", "--strict", *archives])


def write_sums(folder: Path) -> None:
    """Write checksums of all the files of a folder, as sha256sum reads them."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.name != SUMS
    ]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def uploads(folder: Path, tag: str) -> list[list[str]]:
    """Return the commands that would publish a release."""
    version = tag.removeprefix("v")
    packages = [path for path in sorted(folder.glob("hamr-*")) if "-vendored" not in path.name]
    packages = [path for path in packages if path.suffix in (".whl", ".gz")]
    files = sorted(path for path in folder.iterdir() if path.suffix != ".md")
    words = ["--title", f"hamr {version}", "--notes-file", str(folder / "notes.md")]
    return [
        ["git", "push", "origin", "HEAD", tag],
        ["twine", "upload", *map(str, packages)],
        ["gh", "release", "create", tag, *words, *map(str, files)],
    ]


def main() -> int:
    """Make the release."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checks", default="test-all", help="the target that has to pass")
    parser.add_argument("--output", type=Path, default=toolchain.ROOT / "dist")
    options = parser.parse_args()
    version = versions.read()
    tag, folder = f"v{version}", options.output / version
    refuse_changes()
    words = notes(CHANGES.read_text(encoding="utf-8"), version)
    versions.check()
    refuse_tag(tag)
    commit = git("rev-parse", "HEAD")
    bare.check(commit)
    if subprocess.run(["make", options.checks], cwd=toolchain.ROOT, check=False).returncode:
        toolchain.fail(f"make {options.checks} fails")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build(folder)
    (folder / "notes.md").write_text(words, encoding="utf-8")
    write_sums(folder)
    # The checks take long enough for somebody to have gone on with the work.
    refuse_changes()
    if git("rev-parse", "HEAD") != commit:
        toolchain.fail(f"the tree was at {commit} when it was checked, and is no more")
    git("tag", "--annotate", tag, "--cleanup=verbatim", "--file", str(folder / "notes.md"), commit)
    print(f"{tag} is made of {commit}, in {folder}:")
    print((folder / SUMS).read_text(encoding="utf-8"), end="")
    print("Nothing is uploaded. These commands would:")
    for command in uploads(folder, tag):
        print(f"  {shlex.join(command)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
