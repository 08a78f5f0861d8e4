"""A server that is killed again and again loses nothing of devices that a living process has."""

import random

from tests.store.deaths import walk
from tests.store.restarting import Restarts
from tests.store.serving import ServerProcess
from tests.support.processes import scaled


def test_nothing_is_lost_by_restarts(tmp_path, device):
    with ServerProcess(str(tmp_path / "store" / "socket")) as server:
        restarts = Restarts(server, seed := random.randrange(1 << 30), (None, device))
        print("seed", seed)
        for n in range(min(scaled(1000, 100), 3000)):
            restarts.make(n % 3)
        for _ in range(scaled(3)):
            restarts.kill(200)
        restarts.look()


def test_whatever_is_killed_nothing_of_a_device_is_lost():
    """Objects on devices are written to files for lack of room, meanwhile."""
    walk("spilled_devices", scaled(200, 40), random.randrange(1 << 30))
