"""What there is of OpenCL for tests. A process of its own looks: platforms start threads."""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

from tests.support.processes import launch

_PROBE = "import hamr, json; print(json.dumps(hamr.backends()['opencl']))"


@functools.cache
def found() -> dict[str, Any]:
    """What hamr.backends() says of OpenCL."""
    status, output = launch([sys.executable, "-c", _PROBE], 120)
    assert status == 0, output
    said: dict[str, Any] = json.loads(output.splitlines()[-1])
    return said


def absent() -> str:
    """Why there is no OpenCL here; "" if there is."""
    return "" if found()["available"] else f"no OpenCL: {found()['reason']}"
