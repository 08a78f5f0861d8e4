"""Signals and limits of a Python process, which are its own: hamr's threads take none."""

import pytest

from tests.support.processes import run_code, scaled

START = """
import os, resource, signal, subprocess, sys, threading
import hamr

def use():
    for n in range(200):
        b = hamr.Buffer(n, fill=1.0)
        b.append(2)
        assert b[n] == 2
"""

FAULTS = "{signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV}"

#: Each signal that is blocked after the first use, or before it, comes to sigwait.
AWAITED = f"""
def check():
    if first:
        use()
    rest = signal.valid_signals() - {FAULTS} - {{signal.SIGKILL, signal.SIGSTOP}}
    signal.pthread_sigmask(signal.SIG_BLOCK, rest)
    use()
    thread = threading.Thread(target=use)
    thread.start()
    for number in rest:
        os.kill(os.getpid(), number)
        assert signal.sigwait([number]) == number
    thread.join()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == rest
"""

#: A handler of SIGURG is called when it comes, and at no other time.
URGENT = """
def check():
    if first:
        use()
    calls = []
    signal.signal(signal.SIGURG, lambda *_: calls.append(1))
    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    use()
    for thread in threads:
        thread.join()
    assert calls == []
    for n in range(1, 20):
        os.kill(os.getpid(), signal.SIGURG)
        assert len(calls) == n
"""

#: The number of files that may be open is as it was, in programs that are started, too.
FILES = """
def check():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    use()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    ask = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert subprocess.check_output([sys.executable, "-c", ask], text=True) == f"{before}\\n"
"""

#: As above, in this process.
HERE = "check()\n"

#: In children, which load copies of the library, two deep.
CHILDREN = """
use()
def fork(depth):
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return
    try:
        signal.alarm(30)
        if depth:
            use()
            fork(depth - 1)
        else:
            check()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)
for depth in (0, 1):
    fork(depth)
"""


@pytest.mark.parametrize("where", ["here", "children"])
@pytest.mark.parametrize(
    ("what", "first"),
    [
        ("awaited", "used_before"),
        ("awaited", "not_used_before"),
        ("urgent", "used_before"),
        ("urgent", "not_used_before"),
        ("files", "not_used_before"),
    ],
)
def test_what_is_the_process_s_own(what, first, where):
    code = {"awaited": AWAITED, "urgent": URGENT, "files": FILES}[what]
    run_code(
        f"{START}first = {first == 'used_before'}\n{code}{HERE if where == 'here' else CHILDREN}"
    )


def test_a_storm_of_signals():
    """Python's handlers run on the main thread, whatever thread the kernel interrupts."""
    run_code(f"""{START}
calls = []
signal.signal(signal.SIGUSR1, lambda *_: calls.append(threading.current_thread()))
stop = False
def work():
    while not stop:
        use()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for n in range({scaled(3000, 300)}):
    signal.pthread_kill(threads[n % 3].ident, signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR1)
    hamr.Buffer(3000, fill=1.0).astype("f4")
stop = True
for thread in threads:
    thread.join()
assert calls and set(calls) == {{threading.main_thread()}}
""")
