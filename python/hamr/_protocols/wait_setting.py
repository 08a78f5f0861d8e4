"""Whether hamr waits for the work of producers."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTING = "HAMR_CUDA_ARRAY_INTERFACE_SYNC"


def wait_of(wait: Any) -> bool:
    """Whether to wait for producers: as the caller says, else as the environment says."""
    if wait is None:
        global _waits
        if _waits is None:
            _waits = _setting()
        return _waits
    if isinstance(wait, bool):
        return wait
    from .fields import short

    raise TypeError(f"wait is {short(wait)}: accepted are True, False and None")


_waits: bool | None = None


def _setting() -> bool:
    text = os.environ.get(SETTING, "")
    if text not in ("", "0", "1"):
        print(f"hamr: {SETTING} is {text!r}: accepted are 0 and 1", file=sys.stderr)
    return text != "0"
