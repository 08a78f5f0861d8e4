"""hamr needs no NumPy: each script runs where NumPy cannot be imported."""

import pytest

from tests.support import producers

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numpy":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import hamr
"""

SCRIPTS = {
    "make and print": (
        "b = hamr.Buffer(3, 'float32', fill=1.5); print(b); print(b.dtype, repr(b.dtype))",
        "{1.5, 1.5, 1.5}\nfloat32 dtype('float32')\n",
    ),
    "repr": (
        "b = hamr.Buffer((2, 3), 'i2', 'cpp', fill=1); "
        "print(repr(b), repr(hamr.ones(2)), repr(hamr.ones(())))",
        "hamr.Buffer([[1, 1, 1],\n [1, 1, 1]], int16, cpp) hamr.Buffer([1, 1], float64, malloc) "
        "hamr.Buffer(1, float64, malloc)\n",
    ),
    "share a bytearray": (
        "a = bytearray(b'abc'); b = hamr.buffer(a); b[0] = 65; print(a, b.shape, b.readonly)",
        "bytearray(b'Abc') (3,) False\n",
    ),
    "get with out": (
        "a = bytearray(3); print(hamr.Buffer(3, 'u1', fill=7).get(a))",
        "bytearray(b'\\x07\\x07\\x07')\n",
    ),
    "list of int": (
        "b = hamr.Buffer(0, 'i4'); b.append([1, 2]); b.append((3,)); b.append(range(2)); print(b)",
        "{1, 2, 3, 0, 1}\n",
    ),
    "list of large int": (
        "b = hamr.Buffer(0, 'u8'); b.append([2**63, 1]); print(b)",
        "{9223372036854775808, 1}\n",
    ),
    "list of float": (
        "b = hamr.Buffer(0, 'f8'); b.append([1, 2.5, True]); print(b)",
        "{1, 2.5, 1}\n",
    ),
    "list of bool": (
        "b = hamr.Buffer(0, '?'); b.assign([True, False]); print(b)",
        "{True, False}\n",
    ),
    "no elements": ("b = hamr.Buffer(2, 'f4'); b.assign([]); print(b)", "{}\n"),
    "values": (
        "b = hamr.Buffer(3, 'c16', fill=0); b[1] = 2; b[2] = 1j; c = hamr.Buffer(1, fill=2)\n"
        "print(b, b[2].item(), float(c))",
        "{0j, (2+0j), 1j} 1j 2.0\n",
    ),
    "astype and copy": (
        "print(hamr.buffer(b'abc').astype('f4').copy('cpp', dtype=int))",
        "{97, 98, 99}\n",
    ),
    "resize": (
        "b = hamr.Buffer(1, 'i8', fill=5); b.resize((2, 2), 6); print(b)",
        "{{5, 6},\n {6, 6}}\n",
    ),
    "memoryview": (
        "print(memoryview(hamr.Buffer((2, 2), 'i4', fill=3)).tolist())",
        "[[3, 3], [3, 3]]\n",
    ),
    "pickle": (
        "import pickle; print(pickle.loads(pickle.dumps(hamr.Buffer(2, 'bfloat16', fill=1.5))))",
        "{1.5, 1.5}\n",
    ),
    "upstream": (
        "from hamr import *; print(buffer_float(buffer_allocator_malloc, 2, 3.14))",
        "{3.14, 3.14}\n",
    ),
    "command line": ("from hamr.cli import main; main(['info'])", None),
}


@pytest.mark.parametrize(("script", "output"), SCRIPTS.values(), ids=SCRIPTS)
def test_works(script, output):
    done = producers.run_python(f"{BLOCKED}\n{script}\nassert 'numpy' not in sys.modules")
    assert done.stdout == output or (output is None and done.stdout)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("hamr.Buffer(3).get()", "ModuleNotFoundError: No module named 'numpy'"),
        ("hamr.Buffer(0).append([[1], [2]])", "TypeError: without NumPy a list must be flat"),
        ("hamr.Buffer(0).append(['a'])", "TypeError: without NumPy a list must be flat"),
        ("hamr.Buffer(0).append([2**64])", "hamr.OutOfRange: no element type holds"),
        ("hamr.Buffer(0).append([-1, 2**63])", "hamr.OutOfRange: no element type holds"),
        ("hamr.Buffer(3, 3.5)", "TypeError: dtype is 3.5"),
    ],
)
def test_says_what_it_cannot_do(script, error):
    done = producers.run_python(f"{BLOCKED}\n{script}", check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(error)


def test_dtype_becomes_numpys_once_numpy_is_loaded():
    done = producers.run_python(
        "import hamr; b = hamr.Buffer(1, 'f4'); print(type(b.dtype).__module__)\n"
        "import numpy; print(b.dtype == numpy.dtype('f4'), isinstance(b.dtype, numpy.dtype))"
    )
    assert done.stdout == "hamr._base.element\nTrue True\n"
