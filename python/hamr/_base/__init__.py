"""What everything else stands on: the library's loading, types, streams and devices."""

import sys

if "t" in getattr(sys, "abiflags", ""):
    from .free_threaded import check

    check()  # here, since each module of hamr that imports an extension comes after this one
