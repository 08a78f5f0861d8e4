"""The spaces and allocators that hamr has rows for, and which runtimes there are for them."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

from hamr._base.allocator import FACTS, SPACES
from tests.support.processes import launch

NAMES = list(SPACES)

_PROBE = "import hamr, json; print(json.dumps(hamr.backends()))"


@functools.cache
def found() -> dict[str, Any]:
    """What hamr.backends() says. A process of its own asks: some runtimes start threads."""
    status, output = launch([sys.executable, "-c", _PROBE], 120)
    assert status == 0, output
    said: dict[str, Any] = json.loads(output.splitlines()[-1])
    return said


def absent(space: str) -> str:
    """Why code in a space cannot run here; "" if it can."""
    said = found().get(space)
    if said is None:
        return f"no {space}: this version of hamr has no such backend"
    if not said["available"]:
        return f"no {space}: {said['reason']}"
    if space != "host" and not said["devices"]:
        return f"no {space}: it has no device"
    return "" if allocators(space) else f"no {space}: its device 0 lacks all its allocators"


def devices(space: str) -> int:
    """How many devices there are; none for the host."""
    return len(found()[space]["devices"])


def last_device(space: str, name: str) -> int:
    """The last device that has an allocator."""
    return max(i for i in range(devices(space)) if name not in lacking(space, i))


def lacking(space: str, device: int) -> list[str]:
    """The allocators that a device does not have."""
    if space == "host":
        return []
    lacks: str = found()[space]["devices"][device].get("lacks", "")
    return lacks.split(", ")


def allocators(space: str, device: int = 0) -> list[str]:
    """The names of a space's allocators, all of which its device has."""
    own = [facts[0] for facts in FACTS if facts[5] == space]
    return [name for name in own if name not in lacking(space, device)]
