"""Tracing to standard error and to logging."""

import logging
import subprocess
import sys
import threading
import time

import pytest

import hamr


@pytest.fixture
def logger():
    messages = []

    class Collect(logging.Handler):
        def emit(self, record):
            messages.append(record.getMessage())

    log = logging.getLogger("hamr.test")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    handler = Collect()
    log.addHandler(handler)
    yield log, messages
    hamr.set_verbose(0)
    log.removeHandler(handler)


def test_logger_gets_allocation_copy_and_free(logger):
    log, messages = logger
    hamr.set_verbose(1, log)
    first = hamr.Buffer(5000, "float64")
    second = first.copy()
    del first, second
    hamr.set_verbose(0, log)
    text = "\n".join(messages)
    assert text.count("allocate malloc") == 2
    assert "copy" in text
    assert text.count("free malloc") == 2


def test_lines_arrive_without_being_asked_for(logger):
    log, messages = logger
    hamr.set_verbose(1, log)
    hamr.Buffer(5001, "float64")
    for _ in range(200):
        if messages:
            break
        time.sleep(0.05)
    assert any("40008" in m for m in messages)


def test_the_end_waits_for_lines_that_another_thread_has_taken():
    begun, go_on, lines = threading.Event(), threading.Event(), []

    class Slow:
        def debug(self, _, line):
            if threading.current_thread().name == "hamr log":
                begun.set()
                go_on.wait(60)
            lines.append(line)

    hamr.set_verbose(1, Slow())
    try:
        hamr.Buffer(5003, "float64").close()
        assert begun.wait(60)
        threading.Timer(0.2, go_on.set).start()
    finally:
        hamr.set_verbose(0)
        told = list(lines)
    assert any("40024" in line for line in told)


def test_after_the_end_nothing_is_logged(logger):
    log, messages = logger
    hamr.set_verbose(1, log)
    hamr.set_verbose(0, log)
    messages.clear()
    hamr.Buffer(10)
    hamr.set_verbose(0, log)
    assert messages == []


def test_lines_of_the_last_moments_are_logged_at_exit():
    script = (
        "import logging, hamr\n"
        "logging.basicConfig(level=logging.DEBUG, format='%(name)s: %(message)s')\n"
        "hamr.set_verbose(1, logging.getLogger('traced'))\n"
        "hamr.Buffer(777, 'uint8')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "traced: allocate malloc device -1 size 777" in done.stderr


@pytest.mark.parametrize(("value", "traced"), [("0", False), ("1", True), ("3", True), ("", False)])
def test_environment_variable_writes_to_standard_error(value, traced):
    done = subprocess.run(
        [sys.executable, "-c", "import hamr; hamr.Buffer(778, 'uint8')"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"HAMR_VERBOSE": value},
    )
    assert ("size 778" in done.stderr) is traced


def test_bad_environment_variable_is_named():
    done = subprocess.run(
        [sys.executable, "-c", "import hamr; hamr.Buffer(779, 'uint8')"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"HAMR_VERBOSE": "loud"},
    )
    assert "HAMR_VERBOSE is 'loud'" in done.stderr


def test_one_thread_takes_the_lines_however_often_tracing_is_switched(logger):
    log, messages = logger
    for _ in range(20):
        hamr.set_verbose(1, log)
        hamr.set_verbose(0)
    hamr.set_verbose(1, log)
    assert sum(t.name == "hamr log" for t in threading.enumerate()) == 1
    hamr.Buffer(31, "uint8")
    hamr.set_verbose(0, log)
    assert any("size 31" in m for m in messages)


def test_a_full_pipe_as_standard_error_does_not_stop_the_process():
    script = (
        "import os, threading, hamr\n"
        "reading, writing = os.pipe(); os.dup2(writing, 2)\n"
        "hamr.set_verbose(1)\n"
        "drain = threading.Thread(target=lambda: [os.read(reading, 1) for _ in range(200)])\n"
        "drain.start()\n"
        "for _ in range(700): hamr.Buffer(8, 'uint8')\n"
        "drain.join(); hamr.set_verbose(0)\n"
        "os.write(1, b'ended')\n"
        "os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=240, check=True
    )
    assert done.stdout == b"ended"
