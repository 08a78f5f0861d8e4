"""The programs of examples/pygpu: written against PybindGPU's names, but for the import."""

import os
import re
import shutil
import sys

import pytest

from tests.support.paths import ROOT
from tests.support.processes import launch

EXAMPLES = ROOT / "examples" / "pygpu"

# Lines that the output must have, in this order.
OUTPUT = {
    "basic_arrays.py": [
        "sent: [1 2 3 4 5 6] int64 (6,)",
        "on the host until get(): [1 2 3 4 5 6]",
        "after get(): [10  2  3  4  5  6]",
        "k is the host side: True",
        "complex: (1+2j) 432 bytes",
        "round trip: [10  2  3  4  5  6] <CudaError: 'code=0'>",
    ],
    "dtypes.py": [
        "int16: made[0].device_data.is_safe()=False, 8 bytes",
        "complex128: made[0].device_data.is_safe()=False, 64 bytes",
        "10 types, of which dtype.float64 is double",
        "refused: dtype is 'bfloat16': accepted are int16",
    ],
    "orders.py": [
        "C (24, 8) True False",
        "F (8, 16) True True",
        "[[ 0.  1.  2.]\n [-1.  4.  5.]]",
        "columns are contiguous: True",
    ],
    "copies.py": [
        "the copy: [0. 1. 2. 3. 4. 5. 6. 7.] shared, brought back: [0. 1. 2. 3. 4. 5. 6. 7.]",
        "on a stream: [3. 3. 3. 3. 3. 3. 3. 3.] <CudaError: 'code=0'> True",
        "[[ 7  1  7  3]\n [ 7 -1  7 -1]\n [ 7  9  7 11]]",
        "[7 7 7] 4294967295",
    ],
    "allocators.py": [
        "by the other array: [0. 0. 5. 0.] and on x's host side: [0. 0. 0. 0.]",
        "by x_gpu: [0. 0. 5. 0.]",
        "seen by the other, and by the allocator: 4.0 4.0",
        "the other's host side: 36.0 (2, 3)",
        "Host 0 None True True",
        "Device 0 <CudaError: 'code=0'> False True",
        "Pagelocked 0 <CudaError: 'code=0'> True True",
    ],
    "ctypes_library.py": [
        "scaled on the host: [ 0. 10. 20. 30.] <CudaError: 'code=0'>",
        "the device's pointer arrives: True",
        "as an object, too: True",
    ],
    "pointers_and_errors.py": [
        "null: 0 False",
        "host memory: True [1.5 1.5 1.5 1.5]",
        "destroyed: 0 False",
        "before allocate(): <CudaError: 'code=1'> 0",
        "after it: <CudaError: 'code=0'>",
        "0x",
        "devices: True <CudaError: 'code=0'>",
        "current: 0 <CudaError: 'code=0'>",
        "no such device: 101 cudaErrorInvalidDevice",
        "kept for the thread: invalid device ordinal",
        "once: <CudaError: 'code=0'>",
    ],
}
NEEDS_CC = pytest.mark.skipif(not shutil.which("cc"), reason="no cc, which it runs")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[NEEDS_CC] if n == "ctypes_library.py" else []) for n in OUTPUT],
)
def test_examples(name):
    status, output = launch([sys.executable, "-W", "error", str(EXAMPLES / name)], 60)
    assert status == 0, output
    rest = output
    for line in OUTPUT[name]:
        before, found, rest = rest.partition(line)
        assert found, f"{line!r} is not in {before!r}"


def test_only_the_import_names_hamr():
    """What is PybindGPU's of them would run there, under the names that it has."""
    for name in OUTPUT:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if re.search(r"\bhamr\b", line)]
        assert all("import" in line for line in lines), (name, lines)
    assert os.listdir(EXAMPLES)
