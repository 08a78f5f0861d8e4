"""Large copies between ordinary host memory and devices, by way of page-locked chunks."""

import re
import sys
from pathlib import Path

import pytest

from tests.cuda import driver
from tests.support.processes import launch, scaled

SCRIPT = Path(__file__).parent / "scripts" / "staged_copies.py"


def run(kind, *, seed=1, steps=1, **settings):
    """What a process with chunks of 1 KiB says."""
    env = {"HAMR_COPY_CHUNK": "1024", "HAMR_COPY_THREADS": "3", **settings}
    status, output = launch([sys.executable, str(SCRIPT), kind, str(seed), str(steps)], 300, env)
    assert status == 0, output[-4000:]
    return output


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("limit", ["1024", "8192", ""])
def test_every_element_arrives(threads, limit):
    settings = {"HAMR_COPY_THREADS": threads, "HAMR_PINNED_LIMIT": limit}
    assert run("walk", seed=len(limit), steps=scaled(60), **settings).endswith("OK\n")


def test_the_drivers_own_copies_are_a_choice():
    assert run("walk", steps=scaled(30), HAMR_COPY_THREADS="0").endswith("OK\n")


def test_each_call_of_a_copy_fails_once(emulator):
    assert run("faults").endswith("OK\n")


def test_page_locked_memory_is_bounded_and_given_back(emulator):
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parents[3])!r})
import numpy as np
import hamr
from tests.cuda import driver
b = hamr.Buffer(100_000, "u1", "cuda", fill=0)
b.synchronize()
before = driver.emulator.live("bytes")
b[...] = np.ones(100_000, "u1")
b.synchronize()
print(hamr.stats()["pools"]["pinned"]["current"] if driver.POOLED else 4096)
print(driver.emulator.live("bytes") - before)
hamr.trim()
print(driver.emulator.live("bytes") - before)
"""
    env = {"HAMR_COPY_CHUNK": "1024", "HAMR_COPY_THREADS": "8", "HAMR_PINNED_LIMIT": "5000"}
    status, output = launch([sys.executable, "-c", code], 60, env)
    assert (status, output.split()[0], output.split()[2]) == (0, "4096", "0"), output


@pytest.mark.parametrize("name", ["HAMR_COPY_CHUNK", "HAMR_COPY_THREADS", "HAMR_PINNED_LIMIT"])
def test_settings_that_are_no_numbers(name):
    code = "import hamr; print(hamr.backends()['cuda']['reason'])"
    status, output = launch([sys.executable, "-c", code], 60, {name: "many"})
    assert status == 0, output
    assert re.search(f'{name} is "many": ', output), output
    assert driver.DEVICES
