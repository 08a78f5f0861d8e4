"""What make bare takes for passed."""

import contextlib
import re
import sys

import pytest

from build_support import bare, sanitize, summary, wheel_systems

GOOD = [("make py-test", "passed in 3 s"), ("  valgrind", "left out: it is not installed")]


@pytest.fixture
def main(tmp_path, monkeypatch):
    """Runs it on a system that is a folder, whose commands come out as they are told to."""

    def make(root, mirror):
        root.mkdir()

    def run(demo=0, test=0, parts=GOOD):
        outcomes = {"make demo": (demo, []), "make test": (test, parts)}
        monkeypatch.setattr(bare, "follow", lambda command, root, limit: outcomes[command])
        return bare.main()

    monkeypatch.setattr(bare, "PASSED", tmp_path / "record" / "passed")
    monkeypatch.setattr(bare, "make", make)
    monkeypatch.setattr(bare.toolchain, "run", lambda command: "a commit\n")
    monkeypatch.setattr(wheel_systems, "mounted", lambda root: contextlib.nullcontext())
    monkeypatch.setattr(sys, "argv", ["bare", "--folder", str(tmp_path / "system")])
    monkeypatch.delenv(summary.VARIABLE, raising=False)
    return run


def test_what_passes_is_written_and_the_system_removed(main, tmp_path, capsys):
    assert main() == 0
    shown = capsys.readouterr().out.splitlines()
    lines = bare.PASSED.read_text().splitlines()
    assert lines[0] == "a commit"
    assert [line in shown for line in lines[1:]] == [True] * 4
    assert lines[-1] == "    valgrind: left out: it is not installed"
    assert not (tmp_path / "system").exists()
    bare.check("a commit")
    with pytest.raises(SystemExit, match="has not passed with commit another: 'sudo make bare'"):
        bare.check("another")


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({"demo": 2}, r"make demo: failed in \d+ s: status 2"),
        ({"test": 2}, r"make test: failed in \d+ s: status 2"),
        ({"parts": []}, "it reports no parts"),
        ({"parts": [("go vet", "failed (status 1)")]}, "go vet failed"),
        ({"parts": [("  valgrind", "left out")]}, "valgrind is left out: nothing says why"),
        ({"parts": [("  go vet", "left out: no Go")]}, "go vet is left out: no Go"),
    ],
)
def test_what_fails_leaves_the_system_and_no_record(main, tmp_path, capsys, outcomes, words):
    assert main() == 0
    assert main(**outcomes) == 1
    said = capsys.readouterr()
    assert re.search(words, said.out), said.out
    assert f"chroot {tmp_path / 'system'}" in said.err
    assert not bare.PASSED.exists()


def test_parts_that_may_be_left_out_exist():
    assert {name for name, *_ in sanitize.CHECKS} < {*bare.LEFT_OUT}


def test_a_system_that_is_in_use_is_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(wheel_systems.os.path, "ismount", lambda path: path.name == "proc")
    with pytest.raises(SystemExit, match="proc is mounted"):
        wheel_systems.remove(tmp_path)
    assert tmp_path.exists()
