"""Which modules of the host are called by the loop's own thread."""

import threading
import time

from hamr.hetero import Pipeline, module
from hamr.hetero.pipeline_workers import Lengths

SHORT, LONG = 1_000, 1_000_000  # nanoseconds


def test_what_is_short_is_not_worth_a_thread():
    lengths = Lengths()
    seen = []
    for _ in range(20):
        seen.append(lengths.short(1))
        lengths.took(1, SHORT)
    assert seen == sorted(seen)
    assert not seen[0]
    assert seen[-1]
    assert not lengths.short(2)


def test_one_that_took_long_is_remembered():
    lengths = Lengths()
    for _ in range(20):
        lengths.took(1, SHORT)
    lengths.took(1, LONG)
    again = 0
    while not lengths.short(1):
        lengths.took(1, SHORT)
        again += 1
    assert again > 10


def test_a_module_that_takes_long_leaves_the_loop_to_others():
    where = {"quick": [], "slow": []}

    @module("cpu")
    def quick():
        where["quick"].append(threading.current_thread() is threading.main_thread())

    @module("cpu")
    def slow():
        where["slow"].append(threading.current_thread() is threading.main_thread())
        time.sleep(LONG / 1e9)

    results = Pipeline([quick, slow], streams=1).run(range(100))
    assert not any(result.errors for result in results)
    assert not where["quick"][0]
    assert True in where["quick"]
    assert True not in where["slow"]
