"""A server that is killed again and again loses nothing that a living process has."""

import random
import signal

import numpy as np

from hamr.store import connect
from tests.store.restarting import Restarts
from tests.support.processes import scaled, wait_until


def test_nothing_is_lost_by_restarts(server_process):
    restarts = Restarts(server_process, seed := random.randrange(1 << 30), (None,))
    print("seed", seed)
    for n in range(min(scaled(3000, 300), 3000)):
        restarts.make(n % 3)
    for _ in range(scaled(3)):
        restarts.kill(200)
    restarts.look()


def test_a_client_that_makes_no_call_tells_what_it_has(server_process):
    client = connect(server_process.path)
    held = client.get(client.put(np.arange(5), name="five"))
    empty = client.get(client.put(np.zeros(0)))
    server_process.end(signal.SIGKILL)
    server_process.start()
    with connect(server_process.path) as other:
        wait_until(lambda: len(list(other.list())) == 2)
        assert list(other.get(name="five").get()) == list(held.get()) == [0, 1, 2, 3, 4]
        assert other.statistics()["leases"] >= 2
    del held, empty
