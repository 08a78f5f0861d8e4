"""hamr in children of os.fork() and of multiprocessing's three methods."""

import pytest

from tests.support.processes import run_script, scaled


@pytest.mark.parametrize(
    ("finish", "signals"),
    [("exit", "quiet"), ("finalize", "quiet"), ("finalize", "alarm")],
)
def test_children_of_a_busy_parent(finish, signals):
    """Every child reads, changes and drops the parent's buffers, and ends."""
    print(run_script("fork_busy", scaled(200, 10), finish, signals, timeout=400))


def test_without_the_mechanism_children_hang():
    """The tests above can fail: so does a hamr that does nothing about forks."""
    output = run_script("fork_cases", "off")
    assert int(output.split("hung:")[1]) >= 1, output


@pytest.mark.parametrize(
    "case",
    [
        "dropped_before_the_hooks",
        "reads_only",
        "before_use",
        "generations",
        "idle_generations",
        "owners",
        "while_loading",
        "while_filling",
        "threads_in_child",
        "second_import",
        "handler_while_loading",
    ],
)
def test_case(case):
    """Each case is a function of scripts/fork_cases.py, which says what it shows."""
    run_script("fork_cases", case)


def test_forks_where_an_operation_runs_python_code():
    """A finaliser or an argument forks in the middle: parent and child both go on."""
    run_script("fork_anywhere", timeout=300)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    """Pools of processes, pools in pools, and buffers as arguments and results."""
    run_script("fork_pools", method)
