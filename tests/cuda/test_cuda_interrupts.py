"""Signals while a call waits for a device: Ctrl-C ends it, and nothing is lost or hangs."""

import pytest

from tests.cuda import driver
from tests.support.processes import run_script

SETTINGS = {"HAMR_COPY_CHUNK": "16384", "HAMR_COPY_THREADS": "2"}


@pytest.fixture(autouse=True)
def held(emulator):
    """Only the emulator's streams stand still until they are told to go on."""


def run(kind, **settings):
    folder = driver.Path(__file__).parent / "scripts"
    output = run_script("interrupts", kind, env=SETTINGS | settings, folder=folder)
    assert output.endswith("OK\n")


@pytest.mark.parametrize("threads", ["2", "0"], ids=["staged", "by the driver"])
def test_ctrl_c_ends_whatever_waits(threads):
    run("interrupts", HAMR_COPY_THREADS=threads)


def test_a_handler_that_returns_lets_it_go_on():
    run("handled")


def test_a_handler_does_not_change_what_is_being_changed():
    run("changes")


def test_a_child_that_a_handler_forks_is_told_so():
    run("forks")


def test_other_threads_are_not_interrupted():
    run("threads")
