"""The table of C functions that the Go core gives out, by the names of its entries."""

import ctypes
import re
from pathlib import Path

import hamr
from hamr._base.library import core

_WORD = ctypes.sizeof(ctypes.c_void_p)


def entries() -> list[str]:
    """The names of the table's pointers, in order, as the installed header has them."""
    header = Path(hamr.get_include(), "hamr", "functions.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.search(r"typedef struct hamr_functions \{(.*?)\} hamr_functions;", header, re.DOTALL)
    assert found is not None
    names = re.findall(r"\(\*(\w+)\)\(|(\w+);", found[1])
    return [pointer or plain for pointer, plain in names if plain != "version"]


def entry(name: str) -> ctypes.c_void_p:
    """The place of an entry in this process's table: the version comes first."""
    return ctypes.c_void_p.from_address(core().Table() + _WORD * (1 + entries().index(name)))
