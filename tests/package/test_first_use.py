"""The first use of a name of hamr, which imports its modules, wherever that is."""

from tests.support.processes import run_code


def test_the_first_use_adds_no_exit_handler():
    """The program's own ones, which run before hamr's, may use hamr, be it for the first time."""
    run_code("""
import atexit, hamr
handlers = atexit._ncallbacks()
hamr.Buffer(3, fill=1)
assert atexit._ncallbacks() == handlers
""")


def test_a_fork_waits_for_modules_that_another_thread_loads():
    run_code("""
import os, sys, threading, hamr
inside = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "hamr._buffer.handle":
            inside.set()
            stop.wait(0.3)

stop = threading.Event()
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: hamr.Buffer)
thread.start()
inside.wait()
pid = os.fork()
if not pid:
    import signal
    signal.alarm(10)
    os._exit(len(hamr.Buffer(3)))
assert os.waitpid(pid, 0)[1] == 3 << 8
thread.join()
""")


def test_a_finaliser_at_the_end_of_the_interpreter_has_the_names_that_come_with_buffers():
    printed = run_code("""
import sys, hamr

class Last:
    def __del__(self, hamr=hamr):
        found = isinstance(self, hamr.Buffer), hamr.Allocator.cpp, hamr.FreedBuffer, hamr.Handle
        self.say(len(found), sys.meta_path)
        self.say(len(hamr.Buffer(3)))

Last.say = staticmethod(print)
hamr.buffer(b"123")
kept = Last()
kept.cycle = kept
""")
    assert printed == "4 None\n3\n"


def test_a_walk_through_all_modules_loads_none():
    assert (
        run_code("""
import hamr, sys
for module in sys.modules.values():
    for name in ("__file__", "__path__", "__all__", "__wrapped__", "__warningregistry__"):
        getattr(module, name, None)
print(sys.modules["hamr.buffer"]._rebuild.__name__)
""")
        == "_rebuild\n"
    )


def test_every_name_is_there_without_docstrings():
    printed = run_code("""
import subprocess, sys
code = "import hamr\\nfor name in dir(hamr): getattr(hamr, name)\\nprint(len(hamr.buffer(b'123')))"
print(subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True).stdout)
""")
    assert printed.split() == ["3"]


def test_modules_of_older_names_are_pickled_by_their_names():
    """Cloudpickle takes those that a function names, such as hamr.buffer."""
    code = """
import pickle, sys
import hamr
for name in ("hamr.buffer", "hamr.allocator"):
    assert pickle.loads(pickle.dumps(sys.modules[name])) is sys.modules[name]
"""
    run_code(code)
