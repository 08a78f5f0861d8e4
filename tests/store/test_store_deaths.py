"""Some steps of the walk of deaths with each kind of server; the long one is run by hand."""

import random
import subprocess

import pytest

from tests.store.deaths import SERVERS, walk
from tests.support.processes import scaled


def why_not(command):
    """Why a command cannot be run here, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else None


NO_MOUNTS = why_not(["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"])


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
            marks=pytest.mark.skipif(
                kind == "full_disk" and NO_MOUNTS is not None, reason=f"no mounts: {NO_MOUNTS}"
            ),
        )
        for kind in SERVERS
    ],
)
def test_whatever_is_killed_nothing_is_lost(kind):
    walk(kind, scaled(200, 40), random.randrange(1 << 30))
