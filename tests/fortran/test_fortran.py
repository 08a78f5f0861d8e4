"""hamr.f90: what programs in Fortran do with it, and what Python sees of them."""

import ctypes
import re
import subprocess
import sys

import numpy as np
import pytest

import hamr
from tests.support import c_programs, fortran_programs
from tests.support.c_programs import PACKAGES
from tests.support.fortran_programs import PROGRAMS, compile_program
from tests.support.paths import ROOT
from tests.support.processes import launch

pytestmark = pytest.mark.skipif(
    bool(fortran_programs.absent()), reason=fortran_programs.absent() or "there is one"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fortran_programs.build_module(tmp_path_factory.mktemp("fortran"))


def test_everything(folder):
    program = compile_program(PROGRAMS / "everything.f90", folder, folder / "everything")
    assert c_programs.run(program) == "all of it\n"


@pytest.mark.parametrize("flag", ["-fdefault-integer-8", "-O2"])
def test_everything_with_other_flags(flag, tmp_path):
    """Of which one makes default integers, as of stat, larger."""
    module = fortran_programs.build_module(tmp_path, flag)
    program = compile_program(PROGRAMS / "everything.f90", module, tmp_path / "everything", flag)
    assert c_programs.run(program) == "all of it\n"


def declared():
    """The names of subroutines and functions that programs call."""
    text = (ROOT / "include" / "hamr.f90").read_text()
    names = set(re.findall(r"^    interface (hamr_\w+)$", text, re.MULTILINE))
    names |= set(re.findall(r"^ +(?:subroutine|function) (hamr_\w+)\(", text, re.MULTILINE))
    return {name for name in names if not name.startswith("hamr_fortran_")}


def test_every_procedure_is_called():
    text = (PROGRAMS / "everything.f90").read_text()
    own = {"hamr_error_words", "hamr_stop"}  # of hamr_last_error and of errors without stat
    assert len(declared()) > 20
    assert [name for name in sorted(declared() - own) if f"{name}(" not in text] == []


def test_the_numbers_are_those_of_the_header(folder):
    text = re.sub(r" *&\n *", " ", (ROOT / "include" / "hamr.f90").read_text())
    numbers = {}
    for line in re.findall(r"^    integer\(hamr_integer\), parameter :: (.*)", text, re.MULTILINE):
        numbers |= {n: int(v) for n, v in re.findall(r"(\w+) = (-?\d+)", line)}
    assert len(numbers) > 50
    source = folder / "numbers.c"
    lines = "".join(f'printf("{name} %d\\n", (int)({name}));\n' for name in numbers)
    source.write_text(f'#include "hamr.h"\nint main(void) {{ {lines} return 0; }}\n')
    printed = c_programs.run(c_programs.compile_program(source, folder / "numbers"))
    assert dict(line.split() for line in printed.splitlines()) == {
        name: str(number) for name, number in numbers.items()
    }
    header = c_programs.PROGRAMS.parents[2] / "include" / "hamr" / "allocators.h"
    assert set(re.findall(r"^    (HAMR_ALLOCATOR_\w+) =", header.read_text(), re.MULTILINE)) <= {
        *numbers
    }


def test_an_error_that_nobody_asks_for(folder):
    program = compile_program(PROGRAMS / "stops.f90", folder, folder / "stops")
    env = {"HAMR_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}
    status, output = launch([str(program)], 60, env)
    assert status == 1
    assert "ERROR STOP hamr: shape (-3,): a dimension must not be negative" in output
    assert "it went on" not in output


def live():
    return hamr.stats()["allocators"].get("malloc", {"live": 0})["live"]


@pytest.fixture(scope="module")
def library(folder):
    hamr.Buffer(1)  # the library is Python's
    flags = ["-shared"]
    path = compile_program(PROGRAMS / "fields.f90", folder, folder / "libfields.so", *flags)
    found = ctypes.CDLL(str(path))
    found.double_all.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    found.double_all.restype = found.element.restype = ctypes.c_double
    found.make_field.restype = ctypes.c_void_p
    return found


def test_fortran_adopts_what_is_numpys(library):
    array = np.arange(12.0).reshape(3, 4)
    assert library.double_all(array.ctypes.data, 4, 3) == 66
    assert array.tolist() == (2 * np.arange(12.0).reshape(3, 4)).tolist()
    ours = hamr.ones((3, 4))
    assert library.double_all(np.asarray(ours).ctypes.data, 4, 3) == 12
    assert float(ours[2, 3]) == 2


def test_nothing_is_left_after_an_error(library):
    before = live()
    assert library.fail() == 11
    assert live() == before


def test_numpy_has_what_is_fortrans(library):
    """Fortran's (i, j) is [j - 1, i - 1] at the same address, whoever writes; one count of both."""
    before = live()
    address = library.make_field(4, 3)
    assert live() == before + 1
    field = hamr.Buffer.from_pointer(address, (3, 4), "float64", owner=library)
    array = np.asarray(field)
    assert array.ctypes.data == address
    assert array.tolist() == [[100 * i + j for i in range(1, 5)] for j in range(1, 4)]
    array[1, 3] = -5
    assert library.element(4, 2) == -5
    assert array.T.flags.f_contiguous
    assert array.T[3, 1] == -5
    library.drop_field()
    assert live() == before


def test_the_example(tmp_path):
    example = ROOT / "examples" / "fortran" / "analyse.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", example],
        text=True,
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "the plate in Python: (48, 64) heat 1600.000000",
        "after 50 steps, as NumPy computes them: True",
        "NumPy's hot spot, as Fortran finds it: (1000.0, 10, 5)",
        "counted by Python: 2",
        "kept for NumPy: 1 1000.0",
    ]
