"""One place says the version; a release is refused, or made, by what the tree says."""

import re
import shutil
import subprocess
import sys

import pytest

import hamr
from build_support import release, toolchain, versions
from tests.package.test_headers import LANGUAGES
from tests.support.paths import ROOT

SECTION = "## 1.2.0 (2030-01-31)\n\n- First.\n\n## 1.1.0 (unreleased)\n\n- Older.\n\n## 1.0.0\n"


def test_all_say_the_version_of_pyproject():
    version = versions.read()
    assert hamr.__version__ == version
    versions.check()
    assert re.search(rf"^## {re.escape(version)} \(", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_nothing_else_in_the_tree_says_it():
    """Records of runs apart, which say what they ran."""
    said = f'"{versions.read()}"'
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True)
    if listed.returncode:
        pytest.skip("the tree is not a checkout")
    names = [name for name in listed.stdout.splitlines() if not name.startswith("docs/results/")]
    texts = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    found = {name for name, text in texts.items() if said.encode() in text}
    assert found == {"pyproject.toml", "include/hamr/version.h"}


@pytest.mark.skipif(not LANGUAGES["c"][1], reason="no c compiler")
def test_programs_know_the_version_they_were_compiled_for(tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(
        '#include "hamr.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%s %d.%d.%d %d", HAMR_VERSION, HAMR_VERSION_MAJOR,'
        " HAMR_VERSION_MINOR, HAMR_VERSION_PATCH, HAMR_VERSION_NUMBER); return 0; }\n"
    )
    flags = ["-std=c11", f"-I{hamr.get_include()}", source, "-o", program, "-ldl", "-pthread"]
    subprocess.run([*LANGUAGES["c"][1], *flags], check=True)
    said = subprocess.run([program], text=True, capture_output=True, check=True).stdout
    major, minor, patch = versions.numbers(hamr.__version__)
    assert said == f"{hamr.__version__} {hamr.__version__} {10000 * major + 100 * minor + patch}"


@pytest.fixture
def tree(tmp_path):
    """What the version is written in."""
    (tmp_path / "include" / "hamr").mkdir(parents=True)
    for name in ("pyproject.toml", versions.HEADER):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_new_version_is_written(tree):
    assert versions.write(tree, "12.34.56") == versions.read(tree) == "12.34.56"
    assert "#define HAMR_VERSION_NUMBER 123456\n" in (tree / versions.HEADER).read_text()
    versions.check(tree)
    old, new = (folder / "pyproject.toml" for folder in (ROOT, tree))
    changed = set(new.read_text().splitlines()) - set(old.read_text().splitlines())
    assert changed == {'version = "12.34.56"'}


@pytest.mark.parametrize("version", ["1.2", "1.2.3.4", "1.2.100", "01.2.3", "1.2.3rc1", "v1.2.3"])
def test_what_is_no_version(tree, version):
    before = (tree / "pyproject.toml").read_text()
    with pytest.raises(SystemExit, match=f"the version is {version!r}"):
        versions.write(tree, version)
    assert (tree / "pyproject.toml").read_text() == before


def test_a_header_of_another_version_ends_the_build(tree):
    (tree / versions.HEADER).write_text(versions.header("9.9.9"))
    with pytest.raises(SystemExit, match=r"build_support\.versions' writes it"):
        versions.check(tree)


def test_notes_are_the_versions_own():
    assert release.notes(SECTION, "1.2.0") == "- First.\n"


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        (SECTION, "1.3.0", "has 0 sections of"),
        (SECTION + SECTION, "1.2.0", "has 2 sections of"),
        (SECTION, "1.1.0", "a release has a date"),
        (SECTION, "1.0.0", "a release has a date"),
        ("## 1.0.0 (2030-01-31)\n\n## 0.9.0 (2029-01-31)\n\n- Old.\n", "1.0.0", "says nothing of"),
    ],
)
def test_notes_that_are_no_release(text, version, words):
    with pytest.raises(SystemExit, match=words):
        release.notes(text, version)


def git(tree, *words):
    author = ["-c", "user.name=hamr", "-c", "user.email=hamr@example.org"]
    done = subprocess.run(
        ["git", *author, *words], cwd=tree, text=True, capture_output=True, check=True
    )
    return done.stdout


#: Stands in for what takes minutes: the wheels and the source archives.
QUICKLY = """
import sys
from build_support import release
def build(folder):
    (folder / "hamr-7.8.9-py3-none-any.whl").write_text("a wheel")
    (folder / "hamr-7.8.9.tar.gz").write_text("an archive")
    (folder / "hamr-7.8.9-vendored.tar.gz").write_text("another")
release.build = build
sys.exit(release.main())
"""


@pytest.fixture
def checkout(tree):
    """A repository of its own with a version that could be released."""
    shutil.copytree(ROOT / "build_support", tree / "build_support")
    shutil.copy(ROOT / "go.mod", tree)
    versions.write(tree, "7.8.9")
    (tree / "CHANGELOG.md").write_text(SECTION.replace("1.2.0", "7.8.9").replace("- F", "# F"))
    (tree / "Makefile").write_text("good: ; @true\nbad: ; @false\n")
    (tree / ".gitignore").write_text("build/\ndist/\n__pycache__/\n")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "A release")
    git(tree, "config", "user.name", "hamr")
    git(tree, "config", "user.email", "hamr@example.org")
    return tree


def make_release(tree, checks="good", *, bare=True):
    (tree / "build" / "bare").mkdir(parents=True, exist_ok=True)
    commit = git(tree, "rev-parse", "HEAD" if bare else "HEAD^{tree}")
    (tree / "build" / "bare" / "passed").write_text(f"{commit}make demo: passed\n")
    command = [sys.executable, "-c", QUICKLY, "--checks", checks]
    return subprocess.run(command, cwd=tree, text=True, capture_output=True)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_release_is_made_once_and_not_uploaded(checkout):
    done = make_release(checkout)
    assert done.returncode == 0, done.stderr
    folder = checkout / "dist" / "7.8.9"
    # What looks like git's comments is in the tag, too.
    assert git(checkout, "tag", "-l", "--format=%(contents)", "v7.8.9").startswith("# First.\n")
    assert (folder / "notes.md").read_text() == "# First.\n"
    sums = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    subprocess.run(sums, cwd=folder, check=True, capture_output=True)
    assert len((folder / "SHA256SUMS").read_text().splitlines()) == 4
    said = done.stdout.partition("Nothing is uploaded. These commands would:")[2]
    pushed, packages, page = said.strip().splitlines()
    assert pushed == "git push origin HEAD v7.8.9"
    assert "7.8.9.tar.gz" in packages
    assert "vendored" not in packages
    assert all(name in page for name in ("vendored", "SHA256SUMS", ".whl", "notes.md"))
    again = make_release(checkout)
    assert again.returncode == 1
    assert "the tag v7.8.9 is there" in again.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    "reason", ["dirty", "untracked", "section", "header", "remote", "bare", "checks"]
)
def test_a_release_is_refused(checkout, reason, tmp_path_factory):
    words = {
        "dirty": "the tree is not what is committed",
        "untracked": "the tree is not what is committed",
        "section": "has 0 sections of version 7.8.9",
        "header": "is not that of version 7.8.9",
        "remote": "the tag v7.8.9 is there in origin",
        "bare": "make bare has not passed with commit",
        "checks": "make bad fails",
    }[reason]
    if reason == "dirty":
        (checkout / "Makefile").write_text("good: ; @true\n")
    if reason == "untracked":
        (checkout / "new.txt").touch()
    if reason == "section":
        (checkout / "CHANGELOG.md").write_text("# Changelog\n")
        git(checkout, "commit", "-qam", "No section")
    if reason == "header":
        (checkout / versions.HEADER).write_text(versions.header("9.9.9"))
        git(checkout, "commit", "-qam", "Another header")
    if reason == "remote":
        other = tmp_path_factory.mktemp("remote") / "hamr.git"
        git(checkout, "tag", "v7.8.9")
        git(checkout, "clone", "-q", "--bare", str(checkout), str(other))
        git(checkout, "remote", "add", "origin", str(other))
        git(checkout, "tag", "-d", "v7.8.9")
    checks = "bad" if reason == "checks" else "good"
    done = make_release(checkout, checks, bare=reason != "bare")
    assert done.returncode == 1
    assert words in done.stderr
    assert git(checkout, "tag") == ""
    assert not (checkout / "dist").exists()


def test_the_modules_path_is_gos_alone():
    assert toolchain.go_module() == re.match(r"module (\S+)", (ROOT / "go.mod").read_text())[1]
