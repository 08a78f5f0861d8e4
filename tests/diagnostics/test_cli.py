"""The command line, and what hamr says of itself and of its memory."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hamr
from hamr import cli
from hamr._base import library
from tests.support import producers


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "hamr", *arguments],
        text=True,
        capture_output=True,
        check=False,
        cwd="/",
        env={**os.environ, **environment},
    )


def test_info_tells_versions_backends_and_environment():
    done = command("info", HAMR_VERBOSE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"hamr {hamr.__version__}\n")
    assert f"Python {sys.version.split()[0]}, go" in done.stdout
    assert "host: available; allocators cpp, malloc, shared\n" in done.stdout
    assert "preferred allocators: host " in done.stdout
    assert "element types: bool, int8, " in done.stdout
    assert "HAMR_VERBOSE=0  (" in done.stdout


def test_info_as_json_has_this_schema():
    done = command("info", "--json", HAMR_VERBOSE="0")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert {key: type(value) for key, value in facts.items()} == {
        "version": str, "python": str, "platform": str, "machine": str, "go": str, "library": str,
        "backends": dict, "allocators": dict, "preferred": dict, "elements": list,
        "environment": dict, "pools": dict, "processors": dict,
    }  # fmt: skip
    assert set(facts["pools"]["host"]) == {
        "limit", "current", "peak", "cached", "largest_free", "hits", "misses",
    }  # fmt: skip
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", facts["version"])
    assert facts["go"].startswith("go1.")
    assert Path(facts["library"]).is_file()
    assert facts["allocators"] == {a.name: int(a) for a in hamr.Allocator if a >= 0}
    assert facts["environment"]["HAMR_VERBOSE"] == "0"
    assert set(facts["preferred"]) == {"host", "device"}
    assert set(facts["preferred"].values()) <= set(facts["allocators"])
    assert facts["backends"]["host"] == {
        "available": True, "allocators": ["cpp", "malloc", "shared"], "devices": [],
    }  # fmt: skip
    for backend in facts["backends"].values():
        assert backend["available"] or (backend["reason"] and backend["tried"])
        assert {*backend} <= {
            "available", "reason", "tried", "allocators", "devices", "library", "peers", "staging",
        }  # fmt: skip
    assert set(facts["environment"]) == set(cli.ENVIRONMENT)


def test_info_shows_the_pools():
    lines = command("info").stdout.splitlines()
    line = lines[lines.index("pools") + 1]
    assert re.fullmatch(
        r"  host: keeps at most \d+, current 0, peak \d+, cached \d+, largest_free \d+, "
        r"hits \d+, misses \d+",
        line,
    )


def test_info_explains_every_variable_that_is_read():
    done = command("info", HAMR_CUDA_ARRAY_INTERFACE_SYNC="1", HAMR_CUDA_KERNELS="")
    listed = re.findall(r"^  (HAMR_\w+)=(.*)  \((.+)\)$", done.stdout, re.MULTILINE)
    assert [name for name, *_ in listed] == list(cli.ENVIRONMENT)
    assert ("HAMR_CUDA_ARRAY_INTERFACE_SYNC", "1") in [row[:2] for row in listed]
    assert all(len(row[2]) > 20 for row in listed)


def test_info_names_the_library_that_is_missing():
    done = command("info", HAMR_CUDA_LIBRARY="/nowhere/libcuda.so.1")
    assert (
        "  cuda: not available; allocators cuda, cuda_async, cuda_uva, cuda_host, cuda_vmm\n"
        in done.stdout
    )
    assert "    looked for /nowhere/libcuda.so.1: " in done.stdout
    assert "No such file" in done.stdout
    assert "preferred allocators: host malloc, device malloc\n" in done.stdout


def test_info_of_devices(monkeypatch, capsys):
    """As it is on a machine with three devices, of which two are linked."""
    row = {
        "available": True, "allocators": ["cuda"],
        "devices": [{"name": f"Tester {i}", "driver": "13.0"} for i in range(3)],
    }  # fmt: skip
    monkeypatch.setattr(hamr, "backends", lambda: {"cuda": row})

    class Core:
        def __getattr__(self, name):
            return getattr(loaded, name)

        def Library(self, backend):  # noqa: N802
            return "/lib/libtest.so"

        def CanAccess(self, backend, user, owner):  # noqa: N802
            return 2 not in (user, owner)

    def memory_info(backend, device):
        if device == 2:
            raise hamr.DeviceError("it is lost")
        return 10, 30

    loaded = library.core()
    monkeypatch.setattr(library, "core", Core)
    monkeypatch.setattr(hamr._native, "memory_info", memory_info)
    assert cli.main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("  cuda: available; allocators cuda")
    assert lines[at + 1 : at + 8] == [
        "    library /lib/libtest.so",
        "    device 0: name Tester 0, driver 13.0, memory_free 10",
        "    device 1: name Tester 1, driver 13.0, memory_free 10",
        "    device 2: name Tester 2, driver 13.0, error it is lost",
        "    device 0 reaches the memory of 1",
        "    device 1 reaches the memory of 0",
        "    device 2 reaches the memory of no other",
    ]
    assert row["peers"] == [[True, True, False], [True, True, False], [False, False, True]]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--help"], 0, "info"),
        (["info", "--help"], 0, "--json"),
        ([], 2, "usage: hamr"),
        (["nonsense"], 2, "nonsense"),
        (["info", "--nonsense"], 2, "--nonsense"),
        (["--version"], 0, f"hamr {hamr.__version__}"),
        (["bench", "--rounds", "0"], 2, "--rounds: '0' is no count: accepted is an int from 1 on"),
        (["bench", "--rounds", "x"], 2, "--rounds: 'x' is no count"),
        (["bench", "--rounds", "9" * 5000], 2, "9...' is no count: accepted is an int from 1 on"),
        (["bench", "--largest", "9999999999GiB"], 2, "too large: accepted is up to this machine's"),
        (["bench", "--json", "/nowhere/b.json"], 2, "--json /nowhere/b.json: No such file or dir"),
        (["bench", "--json", "/"], 2, "--json /: Is a directory"),
        (["bench", "--only", "all"], 2, "--only: 'all' is no part: accepted are operations, "),
        (["bench", "--largest", "1MB"], 2, "--largest: '1MB' is no size: accepted are 1KiB, "),
        (["bench", "--largest", "0"], 2, "--largest: '0' is no size"),
        (["bench", "--list"], 0, "to-host           cuda   from a GPU to ordinary memory"),
    ],
)
def test_exit_codes(arguments, status, words):
    done = command(*arguments)
    assert done.returncode == status
    assert words in (done.stderr if status else done.stdout)
    assert (done.stdout if status else done.stderr) == ""


@pytest.mark.parametrize(
    "arguments", [["info"], ["bench", "--list"], ["config", "--cflags"], ["--help"]]
)
def test_nobody_reads_what_is_printed(arguments):
    """As ``hamr info | head -1``, once what it prints is longer than what head has read."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hamr", *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={n: v for n, v in os.environ.items() if n != "PYTHONUNBUFFERED"},
            check=False,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_another_broken_pipe_is_an_error(monkeypatch):
    def fails(arguments):
        raise BrokenPipeError("a server has gone")

    monkeypatch.setattr(cli, "_run", fails)
    with pytest.raises(BrokenPipeError, match="a server"):
        cli.main([])


def test_the_figures_file_is_tried_and_left_alone(tmp_path, monkeypatch):
    """Measuring takes minutes: a path that cannot be written is refused before."""
    from hamr._benchmark import running

    kept, new = tmp_path / "kept.json", tmp_path / "new.json"
    kept.write_text("{}")
    seen = []
    monkeypatch.setattr(running, "main", lambda request: seen.append(request) or 0)
    for path in (kept, new):
        assert cli.main(["bench", "--json", str(path), "--rounds", "1"]) == 0
    assert [(one.json, one.rounds) for one in seen] == [(str(kept), 1), (str(new), 1)]
    assert kept.read_text() == "{}"
    assert not new.exists()


def test_main_is_a_function(capsys):
    assert cli.main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == hamr.__version__
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    assert caught.value.code == 2


def test_the_script_is_installed():
    script = Path(sys.executable).parent / "hamr"
    done = subprocess.run([script, "info"], text=True, capture_output=True, check=True)
    assert done.stdout.startswith("hamr ")


# Tracing.

TRACED = """
import hamr
buffer = hamr.Buffer(4, 'f4', fill=1)
copied = buffer.copy('cpp')
copied.close()
del buffer
"""


@pytest.mark.parametrize("level", ["1", "2", "10"])
def test_verbose_writes_a_line_for_each_event(level):
    lines = producers.run_python(TRACED, HAMR_VERBOSE=level).stderr.splitlines()
    words = [line.split()[1:3] for line in lines]
    assert words == [
        ["allocate", "malloc"], ["allocate", "cpp"], ["copy", "4"], ["free", "cpp"],
        ["free", "malloc"],
    ]  # fmt: skip
    assert all(line.startswith("hamr: ") for line in lines)
    assert "size 16 at 0x" in lines[0]


@pytest.mark.parametrize("level", ["0", "", "-1"])
def test_quiet_by_default(level):
    assert producers.run_python(TRACED, HAMR_VERBOSE=level).stderr == ""


def test_a_wrong_level_is_named_and_ignored():
    done = producers.run_python(TRACED, HAMR_VERBOSE="loud")
    assert done.stderr == "hamr: HAMR_VERBOSE is 'loud': accepted is an integer\n"


def test_set_verbose_switches(capfd):
    hamr.set_verbose(3)
    hamr.Buffer(4, "f4")
    hamr.set_verbose(0)
    hamr.Buffer(4, "f4")
    lines = capfd.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["allocate", "free"]
    with pytest.raises(TypeError, match=r"level.*'x'"):
        hamr.set_verbose("x")


def test_set_verbose_to_a_logger(caplog):
    logger = logging.getLogger("tests.hamr")
    caplog.set_level(logging.DEBUG, logger="tests.hamr")
    hamr.set_verbose(1, logger)
    hamr.Buffer(4, "f4")
    hamr.set_verbose(0)
    assert [r.getMessage().split()[0] for r in caplog.records] == ["allocate", "free"]
    assert {r.levelno for r in caplog.records} == {logging.DEBUG}


# Counters.


def test_backends_and_devices():
    backends = hamr.backends()
    assert backends["host"]["available"] is True
    known = [a for row in backends.values() for a in row["allocators"]]
    assert len(known) == len(set(known))
    assert len(hamr.devices()) == sum(len(row["devices"]) for row in backends.values())
    for device in hamr.devices():
        assert backends[device["backend"]]["available"]


def counters(allocator):
    nothing = dict.fromkeys(("live", "current", "peak", "made", "adopted"), 0)
    return hamr.stats()["allocators"].get(allocator.name, nothing)


def test_stats_count_memory(allocator):
    before = counters(allocator)
    buffer = hamr.Buffer(1000, "u1", allocator)
    during = counters(allocator)
    assert during["live"] - before["live"] == 1
    assert during["current"] - before["current"] == 1000
    assert during["made"] - before["made"] == 1
    assert during["peak"] >= during["current"]
    buffer.close()
    after = counters(allocator)
    assert (after["live"], after["current"]) == (before["live"], before["current"])
    assert after["made"] == during["made"]
    hamr.reset_peaks()
    assert counters(allocator)["peak"] == counters(allocator)["current"]


def test_stats_count_what_is_shared():
    before = hamr.stats()
    buffer = hamr.buffer(np.zeros(5))
    during = hamr.stats()
    assert during["allocators"]["malloc"]["adopted"] - counters_of(before) == 1
    assert during["references"] - before["references"] == 1
    assert set(during) == {"spaces", "allocators", "references", "pools"}
    assert during["spaces"]["host"]["adopted"] >= 1
    buffer.close()
    assert hamr.stats()["references"] == before["references"]
    assert counters_of(hamr.stats()) == counters_of(before)


def counters_of(stats):
    return stats["allocators"].get("malloc", {}).get("adopted", 0)


def test_trim_is_harmless():
    buffer = hamr.Buffer(3, fill=1)
    assert hamr.trim() is None
    assert str(buffer) == "{1, 1, 1}"


def test_version_is_the_packages():
    from importlib.metadata import version

    assert hamr.__version__ == version("hamr")
    with pytest.raises(AttributeError, match="no_such_name"):
        hamr.no_such_name  # noqa: B018
