"""Some steps of the walk of deaths with each kind of server; the long one is run by hand."""

import random

import pytest

from tests.store.deaths import SERVERS, walk
from tests.support.processes import scaled, why_not

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
