"""Children of a parent whose threads use hamr all the time.

python -m tests.scripts.fork_busy CHILDREN exit|finalize quiet|alarm
"""

import gc
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np

import hamr
from hamr import _native
from tests.scripts import forking

LARGE = 5 << 20  # bytes: freeing them lets other threads run

own = hamr.Buffer(1000, data=np.arange(1000.0))
cpp = hamr.Buffer(1000, "int32", "cpp", fill=7)
large = hamr.Buffer(LARGE, "uint8", fill=9)
source = np.arange(24).reshape(4, 6)
references = sys.getrefcount(source)
adopted = hamr.buffer(source)
view = own[10:20:2]
handle = cpp.get_host_accessible()
window = memoryview(own)
array = np.asarray(adopted)
stop = threading.Event()
errors = []


def churn(number):
    shared = hamr.Buffer(8, fill=0.0)
    mine = np.arange(100.0)
    try:
        while not stop.is_set():
            made = [hamr.Buffer(n, fill=1.0, allocator=number % 2) for n in (1, 1000, 200_000)]
            made[0].append(np.asarray(made[1]))
            hamr.buffer(mine)[::2].copy()
            shared.append(1)
            if len(shared) > 1000:
                shared.resize(1)
            str(made[0][:10])
    except BaseException as error:
        errors.append(error)
        raise


def read():
    assert np.array_equal(np.asarray(own), np.arange(1000.0))
    assert np.asarray(cpp).sum() == 7000
    assert np.array_equal(np.asarray(view), [10, 12, 14, 16, 18])
    assert np.asarray(handle)[0] == 7
    assert window[999] == 999
    assert np.array_equal(array, np.arange(24).reshape(4, 6))
    assert np.asarray(large)[-1] == 9


def child():
    global own, cpp, large, adopted, view, handle, window, array
    read()
    assert not _native.bound(), "reading loaded the library"
    assert not forking.copies() - inherited
    assert str(view) == "{10, 12, 14, 16, 18}"
    assert len(forking.copies() - inherited) == 1
    own.resize(2000, -1)
    cpp.append(array)
    adopted[0, 0] = 5
    assert source[0, 0] == 5
    assert np.asarray(own)[-1] == -1
    assert len(cpp) == 1024
    assert window[999] == 999
    fresh = hamr.Buffer(500, fill=3)
    assert np.asarray(fresh).sum() == 1500
    assert np.asarray(pickle.loads(pickle.dumps(adopted)))[0, 0] == 5
    cpp.move("malloc")
    own.swap(fresh)
    del fresh, own, cpp, large, adopted, view, handle, window, array
    gc.collect()
    host = hamr.stats()["spaces"]["host"]
    assert host["live"] == host["adopted"] == host["current"] == 0, host
    assert hamr.stats()["references"] == 0
    assert sys.getrefcount(source) == references, "the adopted array's owner was not let go"
    if sys.argv[2] == "finalize":
        globals()["kept"] = [
            hamr.Buffer(10, fill=1),
            hamr.buffer(source),
            np.asarray(hamr.Buffer(9)),
        ]


def main():
    count = int(sys.argv[1])
    finish = os._exit if sys.argv[2] == "exit" else sys.exit
    if sys.argv[3] == "alarm":
        signal.signal(signal.SIGALRM, lambda *_: hamr.Buffer(3, fill=1).append(2))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    threads = [threading.Thread(target=churn, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    failures, running, first = [], [], None
    for i in range(count):
        started = time.perf_counter()
        running.append((i, *forking.start(child, finish)))
        while len(running) > (3 if i < count - 1 else 0):
            number, *process = running.pop(0)
            result = forking.outcome(*process)
            first = first or time.perf_counter() - started
            if result != "done":
                failures.append((number, result))
    signal.setitimer(signal.ITIMER_REAL, 0)
    stop.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not errors, errors
    for number, result in failures[:3]:
        print(f"child {number}: {result}")
    assert not failures, f"{len(failures)} of {count} children failed"
    read()
    assert np.array_equal(source, np.arange(24).reshape(4, 6))
    own.append(1)
    assert np.asarray(own).sum() == 499501
    host = hamr.stats()["spaces"]["host"]
    assert (host["live"], host["adopted"]) == (4, 1), host
    print(f"{count} children, the first took {first * 1000:.0f} ms")


inherited = forking.copies()
main()
