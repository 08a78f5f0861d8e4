"""Limits of the address space (ulimit -v): an exception, never the end of the process."""

import os
import re

import pytest

from tests.support import processes

#: Sets limits, in MiB, and defines what the tests need.
LIMITED = """
import os, resource, sys
MIB = 2**20
def limit(mebibytes, which=resource.RLIMIT_AS):
    resource.setrlimit(which, (int(mebibytes * MIB), resource.getrlimit(which)[1]))
def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") / MIB
import hamr
hamr.Buffer  # its modules are not what is limited
def use():
    b = hamr.Buffer(1000, "f4", fill=1)
    b.append(2)
    return b.size()
def attempt():
    try:
        return use()
    except hamr.OutOfMemory as error:
        assert error.size > 100 * MIB
        return str(error)
"""


def run(code, timeout=120):
    # From 3.12 on Python warns of forking with threads, which is what some of these are about.
    quiet = "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n"
    return processes.run_code(quiet + LIMITED + code, timeout)


@pytest.mark.parametrize("mebibytes", range(100, 2800, 100))
def test_every_limit(mebibytes):
    """A runtime that finds too little ends the process, or writes to memory of others."""
    output = run(f"limit({mebibytes})\nprint(attempt(), attempt())")
    if mebibytes < 2100:
        assert "of address space" in output
    elif mebibytes < 2600:  # how much Python itself takes is not the same everywhere
        assert output == "1001 1001\n" or "of address space" in output
    else:
        assert output == "1001 1001\n"


def needed():
    """What the first use is said to need, in MiB."""
    output = run("limit(500)\nprint(attempt())")
    (found,) = re.findall(r"needs (\d+) MiB of address space", output)
    return int(found)


def test_the_error_says_what_to_do():
    output = run("limit(500)\nprint(attempt())")
    words = (
        r"hamr's library needs (\d+) MiB of address space, and the limit of 500 MiB "
        r"\(ulimit -v, RLIMIT_AS\) leaves (\d+): accepted is no limit, or at least (\d+) MiB\n"
    )
    need, left, least = map(int, re.fullmatch(words, output).groups())
    assert left < 500
    assert abs((500 - left) - (least - need)) <= 1


def test_a_process_that_is_limited_may_import_and_later_have_more():
    output = run("limit(500)\nfirst = attempt()\nlimit(4000)\nprint(first[:4], attempt())")
    assert output == "hamr 1001\n"


@pytest.mark.parametrize("times", range(3))
def test_what_is_said_to_be_needed_is_enough(times):
    """For the first use, all threads of the runtime's, and its garbage collector."""
    del times
    code = f"""
limit(used() + {needed()} + 20)  # and for the elements
assert attempt() == 1001
for _ in range(20_000):
    hamr.Buffer(3).copy()
kept = [hamr.Buffer(3) for _ in range(10_000)]
print("OK")
"""
    assert run(code) == "OK\n"
    assert "leaves" in run(f"limit(used() + {needed()} - 10)\nprint(attempt())")


@pytest.mark.parametrize("kind", ["bytearray", "hamr.Buffer"])
@pytest.mark.parametrize("spare", [4, 500])  # Python's modules take arenas of 1 MiB meanwhile
def test_when_all_is_used_up_it_is_a_memory_error(kind, spare):
    """What the runtime needs for a while it has taken before."""
    make = {"bytearray": "bytearray(n)", "hamr.Buffer": "hamr.Buffer(n, 'u1')"}[kind]
    code = f"""
deep = []
for _ in range(900):
    deep = [deep]
repr(deep)  # the first thread's stack grows, which later the kernel would end the process for
limit(used() + {needed()} + {spare})
use()
kept, n, refused = [], 64 * MIB, 0
while n >= 4096:
    try:
        kept.append({make})
    except MemoryError:
        n //= 2
for _ in range(3000):
    try:
        b = hamr.Buffer(1000, "f8", fill=1)
        b.append(2)
        str(b.copy())
    except MemoryError:
        refused += 1
del kept
assert use() == 1001
print("OK")
"""
    assert run(code).endswith("OK\n")


def test_larger_stacks_need_more():
    output = run("""
limit(500)
resource.setrlimit(resource.RLIMIT_STACK, (8 * MIB, -1))
first = int(attempt().split()[3])
resource.setrlimit(resource.RLIMIT_STACK, (80 * MIB, -1))
second = int(attempt().split()[3])
print(first, second)
""")
    first, second = map(int, output.split())
    assert second - first == 12 * 72


def test_data_is_limited_too():
    for mebibytes in (50, 80, 120, 160, 400):
        output = run(f"limit({mebibytes}, resource.RLIMIT_DATA)\nprint(attempt())")
        assert output == "1001\n" or "MiB of data, and the limit of" in output
    assert output == "1001\n"
    assert "(ulimit -d, RLIMIT_DATA)" in run("limit(50, resource.RLIMIT_DATA)\nprint(attempt())")


def test_a_forked_child_needs_it_again():
    code = f"""
limit(used() + {needed()} + 300)
assert use() == 1001
child = os.fork()
if child == 0:
    text = attempt()
    os._exit(0 if "of address space" in str(text) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(code) == "0\n"


def test_many_processors_are_used_as_there_is_room():
    """Each takes a thread, with a stack and a piece of the address space for malloc."""
    code = """
limit(used() + {room})
use()
for _ in range(20_000):
    hamr.Buffer(3).copy()
print(len(os.listdir("/proc/self/task")))
"""
    threads = [
        int(processes.run_code(LIMITED + code.format(room=room), env={"GOMAXPROCS": "64"}))
        for room in (needed() + 1, needed() + 6000)
    ]
    assert threads[0] <= 12
    assert 20 < threads[1] < 40


def test_where_nothing_limits_nothing_changes():
    code = "use()\nprint(len(os.listdir('/proc/self/task')))"
    assert int(processes.run_code(LIMITED + code, env={"GOMAXPROCS": "64"})) < 30
    assert os.path.exists("/proc/self/limits")
