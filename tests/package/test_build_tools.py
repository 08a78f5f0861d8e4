"""What `make test` does on a machine without Go and a C compiler, and how it ends."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from build_support import go_tests, gopy, sanitize, test_matrix, toolchain, wheel_at_hand
from tests.support.paths import ROOT

ENVIRONMENT = """
import json, subprocess
from build_support import tools
ran, real = [], subprocess.run
subprocess.run = lambda command, **keys: (
    ran.append(command) if "pip" in command else real(command, **keys)
)
print(json.dumps([tools.environment(), ran]))
"""


def environment(**variables):
    """What tools makes of an environment, and the commands by which it installed packages."""
    command = [sys.executable, "-c", ENVIRONMENT]
    done = subprocess.run(
        command, cwd=ROOT, env=variables, text=True, capture_output=True, check=True
    )
    return json.loads(done.stdout)


def test_missing_tools_are_brought_and_found(tmp_path):
    found, ran = environment(PATH=str(tmp_path))
    (install,) = ran
    assert install[:4] == [sys.executable, "-m", "pip", "--quiet"]
    assert install[-3:] == ["install", toolchain.GO_PACKAGE, toolchain.ZIG_PACKAGE]
    folder = str(Path(sys.executable).parent)
    assert found["PATH"] == f"{folder}{os.pathsep}{tmp_path}"
    assert found["CC"] == f"{sys.executable} -m ziglang cc"
    assert found["CXX"] == f"{sys.executable} -m ziglang c++"


def test_a_change_of_c_outside_of_packages_is_compiled(tmp_path):
    """Go's cache looks at the files of a package alone."""
    header = tmp_path / "include" / "hamr" / "a.h"
    source = tmp_path / "python" / "hamr" / "native" / "plain" / "a.c"
    flags = set()
    for path in (header, source):
        path.parent.mkdir(parents=True)
        for text in ("", "int a;\n"):
            path.write_text(text)
            flags.add(gopy.sources_flag(tmp_path))
    assert len(flags) == 3  # an empty file is as none


def test_what_is_brought_has_one_version():
    """And that is the one which builds the wheels, and which the documents name."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        release = tomllib.load(file)["project"]["optional-dependencies"]["release"]
    assert toolchain.ZIG_PACKAGE in release
    text = " ".join((ROOT / "docs" / "wheels.md").read_text().split())
    for package in (toolchain.GO_PACKAGE, toolchain.ZIG_PACKAGE):
        name, version = package.split("==")
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        assert f"`{name}` {version}" in text


@pytest.fixture
def go(tmp_path):
    """A folder with a Go that is new enough."""
    command = tmp_path / "go"
    command.write_text("#!/bin/sh\necho go1.99.0\n")
    command.chmod(0o755)
    return tmp_path


def test_a_compiler_that_is_named_is_used(go):
    found, ran = environment(PATH=str(go), CC="/opt/cc -m64")
    assert ran == []
    assert (found["PATH"], found["CC"]) == (str(go), "/opt/cc -m64")
    assert "CXX" not in found


def test_only_what_is_missing_is_brought(go):
    found, ran = environment(PATH=str(go))
    assert [command[-1] for command in ran] == [toolchain.ZIG_PACKAGE]
    assert toolchain.GO_PACKAGE not in ran[0]
    assert found["PATH"] == str(go)


def test_a_virtual_environment_is_no_system_python():
    """However many packages it has, and though it was made from the system's."""
    elsewhere = "import sys; sys.base_prefix, sys.prefix = '/usr', '/elsewhere'\n"
    command = [sys.executable, "-c", elsewhere + test_matrix.PROBE]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert json.loads(done.stdout)["prefix"] == "/elsewhere"


FLAKY = """
import pathlib, sys
tries = pathlib.Path(sys.argv[1])
count = int(tries.read_text()) + 1 if tries.exists() else 1
tries.write_text(str(count))
if count < int(sys.argv[2]):
    sys.exit(f"ERROR: no answer, try {count}")
"""


@pytest.mark.parametrize(("works", "tries"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_what_needs_the_network_is_tried_again(tmp_path, monkeypatch, capfd, works, tries):
    """The summary has the end of what the last try said."""
    monkeypatch.setattr(wheel_at_hand, "PAUSES", (0, 0))
    count = tmp_path / "tries"
    command = [sys.executable, "-c", FLAKY, str(count), str(works)]
    if works == tries:
        wheel_at_hand.fetch(command)
    else:
        with pytest.raises(subprocess.CalledProcessError) as failure:
            wheel_at_hand.fetch(command)
        outcome = test_matrix.not_set_up(failure.value)
        assert outcome.startswith("not set up: ")
        assert outcome.endswith("exit status 1.\n    ERROR: no answer, try 3")
    assert count.read_text() == str(tries)
    assert capfd.readouterr().err.count("ERROR") == min(tries, works - 1)


def test_gos_skips_are_counted_and_its_failures_shown(capsys):
    events = [
        {"Action": "output", "Package": "p", "Test": "A", "Output": "=== RUN   A\n"},
        {"Action": "output", "Package": "p", "Test": "A", "Output": "    a_test.go:3: no driver\n"},
        {"Action": "skip", "Package": "p", "Test": "A"},
        {"Action": "output", "Package": "p", "Test": "B", "Output": "quiet\n"},
        {"Action": "pass", "Package": "p", "Test": "B"},
        {
            "Action": "output",
            "Package": "p",
            "Test": "C",
            "Output": "    c_test.go:9: 1 is not 2\n",
        },
        {"Action": "fail", "Package": "p", "Test": "C"},
        {"Action": "output", "Package": "p", "Output": "FAIL\tp\t0.1s\n"},
    ]
    lines = [json.dumps(event) + "\n" for event in events]
    assert go_tests.watch([*lines, "no event\n"]) == {"no driver": 1}
    shown = capsys.readouterr().out
    assert shown == "    c_test.go:9: 1 is not 2\nFAIL\tp\t0.1s\nno event\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("outcomes", "status", "last"),
    [
        ({"one": [("a", "passed in 1 s")], "two": []}, 0, "make two: passed in "),
        (
            {"one": [("a", "left out: no tool")], "two": [("b", "left out: no other")]},
            0,
            "2 left out: this machine has not what they need",
        ),
        ({"one": [("a", "failed (status 3)")], "two": [("b", "passed")]}, 1, "  b: passed"),
    ],
)
def test_the_summary_names_every_part(tmp_path, outcomes, status, last, together):
    lines = ["MAKEFLAGS += --no-print-directory"]
    for step, rows in outcomes.items():
        code = f"import sys; from build_support import summary; sys.exit(summary.report({rows!r}))"
        lines.append(f'{step}: ; @echo "this is {step}" && {sys.executable} -c "{code}"')
    (tmp_path / "Makefile").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "build_support.summary", *(["one+two"] if together else outcomes)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        check=False,
    )
    shown = done.stdout.splitlines()
    assert done.returncode == status, done.stdout + done.stderr
    assert shown[-1].startswith(last)
    rows = [row for reported in outcomes.values() for row in reported]
    assert [line for line in shown if line.startswith("  ")] == [f"  {n}: {o}" for n, o in rows]
    assert sorted(line for line in shown if line.startswith("this is")) == [
        "this is one",
        "this is two",
    ]


def test_a_step_leaves_its_wheel_to_the_later_ones_of_a_run(tmp_path):
    left = '"$$HAMR_TEST_WHEELS"'
    (tmp_path / "Makefile").write_text(f"one: ; @touch {left}/a.whl\ntwo: ; @ls {left}\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    for steps, found in ((["one", "two"], ["a.whl"]), (["two"], [])):  # each run has its own
        command = [sys.executable, "-m", "build_support.summary", *steps]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=True
        )
        assert [line for line in done.stdout.splitlines() if line.endswith("whl")] == found


@pytest.mark.parametrize("there", [True, False])
def test_the_wheel_of_the_run_is_installed_if_there_is_one(monkeypatch, tmp_path, there):
    commands = []
    codes = iter([1, 1, 0, 0])  # a network fails now and then

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, next(codes), stderr="")

    monkeypatch.setattr(wheel_at_hand, "PAUSES", (0, 0))
    monkeypatch.setattr(wheel_at_hand.subprocess, "run", run)
    monkeypatch.setenv("HAMR_TEST_WHEELS", str(tmp_path))
    wheel = tmp_path / "hamr-1-any.whl"
    if there:
        wheel.touch()
    wheel_at_hand.install("test", "numpy")
    for command in commands[:3]:
        assert command[-2:] == [f"{wheel if there else ROOT}[test]", "numpy"]
    again = [["--no-deps", "--force-reinstall", str(wheel)]] if there else []
    assert [command[-3:] for command in commands[3:]] == again


def test_the_pythons_that_run_most_come_first():
    four = [test_matrix.Interpreter("", f"3.{n}") for n in (11, 12, 13, 14)]
    for count, turns in ((0, []), (1, [0]), (2, [0, 1]), (4, [0, 3, 1, 2])):
        found = test_matrix.in_turn(four[:count])
        assert found == [(i, four[i]) for i in turns]


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        (["memmove (vg_replace_strmem.c:1)", "(in /x/hamr/_native.abi3.so)"], True),
        (["(in /x/hamr/_native.abi3.so)", "(in /x/hamr/_gopy/_pyhamr.abi3.so)"], True),
        (["(in /x/hamr/_gopy/_pyhamr.abi3.so)", "(in /x/hamr/_native.abi3.so)"], False),
        (["(in /memfd:hamr (deleted))", "(in /x/hamr/_native.abi3.so)"], False),
    ],
)
def test_the_extensions_accesses_are_told_from_gos(frames, found):
    report = "".join(f"==1==    by 0x1: ??? {frame}\n" for frame in frames)
    assert sanitize.by_extension(report) is found


def test_what_runs_without_the_race_detector_is_there():
    for folder, tests in go_tests.ONE_AFTER_ANOTHER.items():
        text = "".join(file.read_text() for file in (ROOT / folder).glob("*_test.go"))
        for test in tests:
            assert f"func {test.partition('/')[0]}(" in text, (folder, test)
