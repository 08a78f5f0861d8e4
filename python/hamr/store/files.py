"""Arrays of safetensors files, in place."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import weakref
from pathlib import Path
from stat import S_ISREG

from .._base.element import element_of, item_size
from .._buffer.buffers import Buffer, buffer
from .arguments import path_of
from .groups import Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, BinaryIO

#: The format's element types.
TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16",
    "U32": "uint32", "I32": "int32", "U64": "uint64", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
#: The number that a file begins with: how long its header is.
LENGTH = 8
#: What says which file of a folder has which array.
INDEX = ".safetensors.index.json"


def arrays_of(path: Any, only: tuple[str, ...] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of a file, or of all files of a folder, by name, and the files' metadata.

    The arrays are the files' pages in memory, and read-only.
    """
    if path is None:
        raise TypeError("path is None: accepted is a file or a folder")
    where = Path(path_of("path", path))
    files, expected = _files(where) if where.is_dir() else ([where], {})
    arrays: dict[str, Any] = {}
    file_of: dict[str, Path] = {}
    told: list[dict[str, str]] = []
    for file in files:
        found, says = _opened(file)
        told.append(says)
        for name, each in found.items():
            if name in arrays:
                raise ValueError(
                    f"{file} has {name!r}, as {file_of[name]} has: accepted is one of them"
                )
            arrays[name], file_of[name] = each, file
    for name, shard in expected.items():
        if name not in arrays or file_of[name].name != shard:
            raise ValueError(
                f"{where / shard} has no {name!r}, which the folder's index says it has"
            )
    return _selected(arrays, only), _common(told)


def _files(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """The files that make up a folder's arrays, and which arrays its index expects in which."""
    indices = sorted(folder.glob(f"*{INDEX}"))
    if len(indices) > 1:
        raise ValueError(
            f"{folder} has the indices {', '.join(i.name for i in indices)}: accepted is a folder "
            "with one, or the path of a file"
        )
    if not indices:
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise FileNotFoundError(f"{folder} has no file whose name ends with .safetensors")
        return files, {}
    try:
        with _open(indices[0]) as opened:
            expected = json.loads(opened.read())["weight_map"]
        names = {
            name
            for name in expected.values()
            if name not in ("", "..") and Path(path_of("its file", name)).name == name
        }
        if len(names) != len(set(expected.values())):
            raise ValueError("it names files of other folders")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{indices[0]} is no index of safetensors files: {error!r}") from None
    return [folder / name for name in sorted(names)], expected


def _open(file: Path) -> BinaryIO:
    """A file. Nobody is waited for, as the other end of a pipe would be."""
    opened = open(  # noqa: SIM115
        file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)
    )
    if not S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise ValueError(f"{file} is a pipe or a device: accepted is a file")
    return opened


def _opened(file: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """A file's arrays, and its metadata."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise ImportError("safetensors is not installed: pip install safetensors") from None

    with _open(file) as opened:
        try:
            # It checks the whole header. By the descriptor: the name may be another file's by now.
            with safe_open(f"/proc/self/fd/{opened.fileno()}", framework="numpy"):
                pass
        except SafetensorError as error:
            raise ValueError(f"{file} is no safetensors file: {error}") from None
        except FileNotFoundError:
            _open(file).close()  # It is what safetensors says, too, where no more may be open.
            raise
        length = int.from_bytes(opened.read(LENGTH), "little")
        header = json.loads(opened.read(length))
        whole = _pages(opened)
    says = header.pop("__metadata__", None) or {}
    begin = LENGTH + length
    return {name: _array(file, name, told, whole, begin) for name, told in header.items()}, says


def _pages(opened: BinaryIO) -> Buffer:
    """A file in memory. ``mmap.mmap`` would keep a descriptor, of which a process has few."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = os.fstat(opened.fileno()).st_size
    libc.mmap.restype = ctypes.c_void_p
    what = mmap.PROT_READ, mmap.MAP_SHARED, opened.fileno(), ctypes.c_long(0)
    address = libc.mmap(None, ctypes.c_size_t(size), *what)
    if address == ctypes.c_void_p(-1).value:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), opened.name)
    pages = (ctypes.c_ubyte * size).from_address(address)
    unmap = weakref.finalize(pages, libc.munmap, ctypes.c_void_p(address), ctypes.c_size_t(size))
    unmap.atexit = False  # others may still have them
    return buffer(memoryview(pages).cast("B").toreadonly())


def _array(file: Path, name: str, told: Any, whole: Buffer, begin: int) -> Buffer:
    """An array of a file, in place if it is aligned there."""
    try:
        dtype, shape, (first, last) = told["dtype"], told["shape"], told["data_offsets"]
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"{file} is no safetensors file: it has {name!r} as {told!r:.100}"
        ) from None
    kind = TYPES.get(dtype)
    if kind is None:
        raise ValueError(f"{file} has {name!r} of type {dtype}: accepted are {', '.join(TYPES)}")
    data = whole[begin + first : begin + last]
    if data.ptr % item_size(element_of(kind)):
        data = data.copy()
    try:
        return data.view(kind).reshape(shape)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{file} has {name!r}, which hamr cannot have: {error}") from None


def _selected(arrays: dict[str, Any], only: tuple[str, ...] | None) -> dict[str, Any]:
    """The arrays whose names are asked for, or begin so up to a dot."""
    if only is None:
        return arrays
    wanted = Wanted(only)
    selected = {name: each for name, each in arrays.items() if wanted.has(name)}
    if wanted.missing:
        raise ValueError(
            f"only has {min(wanted.missing)!r}: accepted are names of arrays, as "
            f"{min(arrays, default='layers.0.weight')!r}, or their beginnings up to a dot"
        )
    return selected


def _common(told: Iterable[dict[str, str]]) -> dict[str, str]:
    """What no two files say differently."""
    values: dict[str, set[str]] = {}
    for says in told:
        for key, value in says.items():
            values.setdefault(key, set()).add(value)
    return {key: found.pop() for key, found in values.items() if len(found) == 1}


def bar_of(nbytes: int, path: str) -> Any:
    """A progress bar; None where tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=nbytes, unit="B", unit_scale=True, unit_divisor=1024, desc=path)
