"""Source archives, builds without a network, and what an editable installation says.

The builds themselves take minutes: make packaging.
"""

import io
import os
import subprocess
import sys
import tarfile
import warnings

import pytest

from build_support import offline, source_archive, staleness, toolchain
from tests.support.paths import ROOT


@pytest.fixture
def tree(tmp_path):
    """A tree with a source of each kind."""
    for name in ("gobuffer/a.go", "gobuffer/a_test.go", "python/hamr/native/base/a.c", "go.mod"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"// {name}\n")
    return tmp_path


def said(tree):
    """What an import says of the tree."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        staleness.warn(tree / "generated" / staleness.NAME)
    return [str(warning.message) for warning in caught]


@pytest.fixture
def built(tree):
    """The same, of which a build has made a record."""
    staleness.write(tree / "generated", tree)
    assert said(tree) == []
    return tree


@pytest.mark.parametrize("name", ["gobuffer/a.go", "python/hamr/native/base/a.c", "go.mod"])
def test_a_source_that_changed_is_told(built, name):
    (built / name).write_text("// Another.\n")
    (words,) = said(built)
    assert f"{name} changed" in words
    assert f"pip install -e {built}" in words


def test_a_change_of_the_same_size_and_time_of_another_is_told(built):
    path = built / "gobuffer/a.go"
    path.write_text(path.read_text().upper())
    os.utime(path, ns=(0, 0))
    assert len(said(built)) == 1


def test_new_and_missing_sources_are_told(built):
    (built / "gobuffer" / "a.go").rename(built / "gobuffer" / "b.go")
    (words,) = said(built)
    assert "gobuffer/a.go, gobuffer/b.go changed" in words


def test_many_changes_are_counted(built):
    for i in range(5):
        (built / "gobuffer" / f"new{i}.go").touch()
    (words,) = said(built)
    assert "gobuffer/new2.go and 2 more changed" in words


def test_what_changes_nothing_is_not_told(built):
    (built / "gobuffer" / "a_test.go").write_text("// Another.\n")
    (built / "gobuffer" / "a.md").touch()
    os.utime(built / "gobuffer" / "a.go", ns=(0, 0))
    assert said(built) == []


def test_the_record_brings_the_program_that_reads_it(built):
    (built / "gobuffer" / "a.go").write_text("// Another.\n")
    program = built / "generated" / staleness.NAME / "__init__.py"
    done = subprocess.run([sys.executable, program], text=True, capture_output=True, cwd=built)
    assert done.returncode == 0
    assert "RuntimeWarning: hamr's extensions are older than their sources" in done.stderr


def test_each_folder_of_sources_is_watched():
    found = {name.rpartition("/")[0].partition("/")[0] for name in staleness.sources(ROOT)}
    named = {os.path.normpath(folder).partition("/")[0] for folder in staleness.FOLDERS}
    assert found == {"", *named}
    assert "store/internal/wire/path.go" in staleness.sources(ROOT)


def packed(path, *entries):
    """A source archive with such entries: name, content, mode, time."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content, mode, time in entries:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, time
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_archives_do_not_say_who_made_them_and_when(tmp_path):
    entries = [("hamr-1/b", b"second", 0o600, 7), ("hamr-1/a.sh", b"first", 0o700, 9)]
    results = []
    for i, order in enumerate((entries, [(n, c, m, 5) for n, c, m, _ in reversed(entries)])):
        target = tmp_path / f"target{i}.tar.gz"
        source_archive.repack(packed(tmp_path / f"{i}.tar.gz", *order), target, 315532800)
        results.append(target.read_bytes())
    assert results[0] == results[1]
    with tarfile.open(tmp_path / "target0.tar.gz") as archive:
        found = [(m.name, m.mode, m.mtime, m.uid, m.uname) for m in archive.getmembers()]
        assert archive.extractfile("hamr-1/b").read() == b"second"
    assert found == [
        ("hamr-1/a.sh", 0o755, 315532800, 0, ""),
        ("hamr-1/b", 0o644, 315532800, 0, ""),
    ]


def test_a_folder_more_is_below_the_archives_own(tmp_path):
    added = tmp_path / "vendor"
    (added / "example.org").mkdir(parents=True)
    (added / "example.org" / "x.go").write_text("package x\n")
    archive = packed(tmp_path / "a.tar.gz", ("hamr-1/go.mod", b"module hamr\n", 0o644, 0))
    source_archive.repack(archive, tmp_path / "b.tar.gz", 0, added)
    with tarfile.open(tmp_path / "b.tar.gz") as made:
        assert made.getnames() == ["hamr-1/go.mod", "hamr-1/vendor/example.org/x.go"]


def test_what_offline_builds_lack_is_named_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv(offline.VARIABLE, "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(toolchain, "have_ziglang", lambda: False)
    monkeypatch.setattr(offline, "have_pybindgen", lambda: False)
    with pytest.raises(SystemExit) as caught:
        offline.check(packages=True)
    words = str(caught.value).splitlines()
    assert words[0] == "hamr: HAMR_BUILD_OFFLINE=1 forbids downloads, and this is missing:"
    assert [line.split()[0] for line in words[1:]] == ["Go", "a", "the"]
    with pytest.raises(SystemExit, match="a C compiler") as caught:
        offline.check(packages=False)  # pip brings them after this
    assert "pybindgen" not in str(caught.value)


@pytest.mark.skipif(toolchain.find_go() is None, reason="no go, or one that is too old")
def test_missing_modules_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv(offline.VARIABLE, "1")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path))
    assert "github.com/ebitengine/purego" in offline.missing_modules(toolchain.find_go())


@pytest.mark.parametrize(("value", "wanted"), [("", False), ("0", False), ("1", True)])
def test_offline_is_asked_for_by_a_setting(monkeypatch, value, wanted):
    monkeypatch.setenv(offline.VARIABLE, value)
    assert offline.wanted() is wanted
    assert bool(offline.settings()) is wanted
    if not wanted:
        offline.check(packages=True)


def test_other_values_are_refused(monkeypatch):
    monkeypatch.setenv(offline.VARIABLE, "yes")
    with pytest.raises(SystemExit, match="is 'yes': accepted are 0 and 1"):
        offline.wanted()
