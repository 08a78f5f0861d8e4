"""Reading the parameters of kernels in PTX: the size of each, and whether it is a float."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: A parameter is an integer, a float, or just bytes.
INTEGER, FLOAT, BYTES = "i", "f", "b"

#: The kind and the bytes of PTX's types. For half precision use NumPy's scalars.
_TYPES = {f"{kind}{bits}": (INTEGER, bits // 8) for kind in "su" for bits in (8, 16, 32, 64)}
_TYPES |= {f"b{bits}": (BYTES, bits // 8) for bits in (8, 16, 32, 64, 128)}
_TYPES |= {"f32": (FLOAT, 4), "f64": (FLOAT, 8)}
_TYPES |= {"f16": (BYTES, 2), "bf16": (BYTES, 2), "f16x2": (BYTES, 4)}

# Strings and comments: file names may look like comments, and comments like code.
_ASIDE = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^()]*)\))?")
_WORD = re.compile(r"\.?[\w$%]+|\S")


def is_ptx(image: bytes) -> bool:
    """Whether code is text that the driver compiles, and no cubin or fatbin."""
    head = image[:256].rstrip(b"\0")  # text may end with zeros
    return b"\0" not in head and not head.startswith(b"\x7fELF") and b".version" in image


def parameters_of(image: bytes) -> dict[str, tuple[tuple[str, str, int], ...]]:
    """The parameters of each kernel by its name: type in PTX's words, kind, and bytes.

    Kernels with a parameter that is not understood are left out.
    """
    text = _ASIDE.sub(" ", image.decode("utf-8", "replace"))
    found = {}
    for entry in _ENTRY.finditer(text):
        try:
            found[entry[1]] = tuple(_parameters(entry[2] or ""))
        except (KeyError, ValueError):
            continue
    return found


def _parameters(text: str) -> Iterator[tuple[str, str, int]]:
    """The parameters in a kernel's parentheses; KeyError or ValueError if that is not PTX."""
    if not text.strip():
        return
    for declaration in text.split(","):
        words = _WORD.findall(declaration)
        if words[:1] != [".param"]:
            raise ValueError(declaration)
        at = 3 if words[1:2] == [".align"] else 1  # .align 8, in front of the type
        name = words[at].removeprefix(".") if len(words) > at else ""
        kind, size = _TYPES[name]
        if "[" not in words:
            yield name, kind, size
            continue
        opening = words.index("[")
        if len(words) != opening + 3 or words[-1] != "]":
            raise ValueError(declaration)
        count = int(words[opening + 1], 0)
        yield f"{name}[{count}]", BYTES, count * size
