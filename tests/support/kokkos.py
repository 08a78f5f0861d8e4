"""Which Kokkos there is for C++ programs: its own package, or the one that Trilinos brings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_ROOT = os.environ.get("KOKKOS_ROOT", "/usr/local")

#: Where the header may be, and what belongs to it.
_PLACES = [
    (f"{_ROOT}/include", f"-L{_ROOT}/lib -Wl,-rpath,{_ROOT}/lib -lkokkoscore", "c++20"),
    ("/usr/include", "-lkokkoscore", "c++20"),
    ("/usr/include/kokkos", "-lkokkoscore", "c++20"),
    ("/usr/include/trilinos", "-ltrilinos_kokkoscore", "c++17"),
]
_FOUND = [place for place in _PLACES if (Path(place[0]) / "Kokkos_Core.hpp").exists()]

COMPILER = shutil.which("c++")

#: What a compiler is told before its sources, and behind them.
FLAGS, LIBRARIES = "", ""
if _FOUND:
    _include, LIBRARIES, _standard = _FOUND[0]
    FLAGS = f"-std={_standard} -fopenmp" + (
        "" if _include == "/usr/include" else f" -isystem{_include}"
    )


def absent() -> str:
    """Why there is none here; "" if there is."""
    if not COMPILER:
        return "no c++"
    looked = ", ".join(place for place, _, _ in _PLACES)
    return "" if _FOUND else f"no Kokkos: Kokkos_Core.hpp is not in {looked}"
