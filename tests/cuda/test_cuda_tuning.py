"""What was found by measuring: which copies go by it, and what ``hamr info`` shows of it."""

import json
import os
import subprocess
import sys

import pytest

from tests.cuda import driver

MEASURED = """
import sys
from hamr._tuning import copies, running
class Copies(copies.Copies):
    def prepare(self, threads):
        pass
    def seconds(self, direction, nbytes, threads):
        if direction == "down" or threads == 0:
            return nbytes * (1 + threads)
        return nbytes / (2 * threads) if nbytes >= 1 << 19 else 2 * nbytes
sys.exit(running.main(running.Request(quick=False), Copies))
"""
COPY = """
import hamr
n = 600_000
host, b = hamr.Buffer(n, "u1", "malloc", fill=3), hamr.Buffer(n, "u1", "cuda", fill=0)
b[...] = host[:n]
b.synchronize()
out = hamr.Buffer(n, "u1", "malloc", fill=0)
out[...] = b
b.synchronize()
assert bytes(out) == bytes([3]) * n
from hamr._tuning.settings import report_of
print("held", report_of("cuda", 0)["pinned_held"][0] != "0")
"""


def run(*arguments, code=None, **environment):
    env = {k: v for k, v in os.environ.items() if k != "HAMR_TUNING"}
    command = ["-c", code] if code else ["-m", "hamr", *arguments]
    return subprocess.run(
        [sys.executable, *command],
        text=True, capture_output=True, check=False, timeout=120, env={**env, **environment},
    )  # fmt: skip


def staging(**environment):
    done = run("info", "--json", **environment)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)["backends"]["cuda"]["staging"]
    assert len(reports) == driver.DEVICES
    return reports[0]


def measured(**environment):
    done = run(code=MEASURED, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_measured_is_in_force(tmp_path):
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    before = staging(**home)
    assert before["from_up"]["source"] == before["threads_down"]["source"] == "default"
    assert "there is no " in before["tuning"]["source"]
    text = measured(**home)
    assert "staged from 512 KiB on, by " in text
    path = before["tuning"]["value"]
    assert f"written to {path}\n" in text
    assert os.path.dirname(path) == str(tmp_path / "hamr")
    after = staging(**home)
    assert after["from_up"] == {"value": 1 << 19, "source": "tuning"}
    assert after["from_down"] == {"value": "never", "source": "tuning"}
    assert after["threads_down"] == {"value": 1, "source": "tuning"}
    assert after["tuning"] == {"value": path, "source": "in force"}
    done = run("info", **home)
    assert "staged to the device: from 512 KiB (tuning), to the host: never (tuning)" in done.stdout
    wins = staging(**home, HAMR_COPY_THREADS="3", HAMR_COPY_CHUNK="4096", HAMR_PINNED_LIMIT="8192")
    for name, value in {
        "from_up": 4096, "from_down": 4096, "threads_up": 3, "chunk": 4096, "pinned_limit": 8192,
    }.items():  # fmt: skip
        assert wins[name] == {"value": value, "source": "environment"}
    assert wins["pinned_held"] == {"value": 0, "source": None}


def test_a_home_that_the_program_says(tmp_path):
    measured(XDG_CONFIG_HOME=str(tmp_path))
    code = (
        "import os, hamr\n"
        f"os.environ['XDG_CONFIG_HOME'] = {str(tmp_path)!r}\n"
        "from hamr.cli import main\n"
        "main(['info', '--json'])\n"
    )
    done = run(code=code, XDG_CONFIG_HOME="/nowhere")
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)["backends"]["cuda"]["staging"]
    assert reports[0]["from_up"]["source"] == "tuning"


@pytest.mark.parametrize("value", ["", "0"])
def test_a_tuning_that_is_not_to_be_read(tmp_path, value):
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    measured(**home)
    report = staging(**home, HAMR_TUNING=value)
    assert report["from_down"]["source"] == "default"
    assert "none is to be read" in report["tuning"]["source"]
    done = run("tune", **home, HAMR_TUNING=value)
    assert (done.returncode, done.stdout) == (1, "")
    assert "use --dry-run" in done.stderr


def test_a_named_file_has_every_kind_of_device(tmp_path):
    path = str(tmp_path / "tuning.txt")
    measured(HAMR_TUNING=path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert staging(HAMR_TUNING=path)["from_up"]["source"] == "tuning"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("processors = ", "processors = 1"))
    report = staging(HAMR_TUNING=path)
    assert report["from_up"]["source"] == "default"
    assert "of another machine, whose processors" in report["tuning"]["source"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("nonsense")
    assert 'line 1 is "nonsense"' in staging(HAMR_TUNING=path)["tuning"]["source"]


def test_a_home_that_cannot_be_written():
    done = run("tune", XDG_CONFIG_HOME="/proc/nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "hamr tune: /proc/nowhere/hamr/tuning-" in done.stderr
    assert "cannot be written: " in done.stderr


def test_copies_go_by_it(tmp_path):
    """One of 600,000 bytes is staged where that was found worth it, and told of once."""
    home = {"XDG_CONFIG_HOME": str(tmp_path), "HAMR_VERBOSE": "1"}
    done = run(code=COPY, **home)
    assert done.stdout == "held False\n", done.stderr
    assert done.stderr.count("tuning of cuda device 0 is not used: there is no ") == 1
    measured(XDG_CONFIG_HOME=str(tmp_path))
    done = run(code=COPY, **home)
    assert done.stdout == "held True\n", done.stderr
    assert done.stderr.count("tuning of cuda device 0 of ") == 1
    small = COPY.replace("600_000", "200_000").replace("from hamr._t", "raise SystemExit #")
    done = run(code=small, **home)
    assert done.returncode == 0
    assert "tuning" not in done.stderr


def test_the_real_thing(tmp_path):
    """Times of an emulator mean nothing; what is written is taken."""
    path = str(tmp_path / "tuning.txt")
    done = run("tune", "--quick", "--json", HAMR_TUNING=path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["written"] == [path]
    for device in facts["devices"]:
        for direction in "up", "down":
            assert device[direction]["threads"] >= 1
            assert all(row["driver_us"] > 0 for row in device[direction]["rows"])
    assert staging(HAMR_TUNING=path)["tuning"]["source"] == "in force"
    done = run("tune", "--quick", "--dry-run", HAMR_TUNING=path, HAMR_PINNED_LIMIT="1000")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no page-locked memory is available" in done.stderr
