"""A server that is killed again and again loses nothing that a living process has."""

import random

from tests.store.restarting import Restarts
from tests.support.processes import scaled


def test_nothing_is_lost_by_restarts(server_process):
    restarts = Restarts(server_process, seed := random.randrange(1 << 30), (None,))
    print("seed", seed)
    for n in range(min(scaled(3000, 300), 3000)):
        restarts.make(n % 3)
    for _ in range(scaled(3)):
        restarts.kill(200)
    restarts.look()
