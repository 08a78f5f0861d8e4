"""SYCL and OpenCL in one process, on the memory of one vendor's runtime: each frees its own."""

import re

import numpy as np
import pytest

import hamr
from tests.support import opencl_runtime
from tests.support.processes import run_code

pytestmark = pytest.mark.skipif(bool(opencl_runtime.absent()), reason=opencl_runtime.absent())


@pytest.fixture
def device():
    """The number that the device of SYCL's has in OpenCL."""
    name = hamr.backends()["sycl"]["devices"][0]["name"]
    rows = hamr.backends()["opencl"]["devices"]
    return next(i for i, row in enumerate(rows) if row["name"] == name)


def test_between_all_places(name, device):
    values = np.arange(70_000.0)
    here = hamr.buffer(values).copy(name)
    for other in ("opencl_device", "opencl_svm"):
        there = here.copy(other, device=device)
        assert not there.accessible("sycl")
        there[0] = 5
        back = there.copy(name)
        assert back.get()[0] == 5
        np.testing.assert_array_equal(back.get()[1:], values[1:])
        assert here.get_opencl_accessible(device).ptr != here.ptr


#: The trace of SYCL's own runtime tells of each piece of memory that it takes and gives back.
BOTH = """
import hamr
names = ("sycl_device", "sycl_shared", "sycl_host", "opencl_device", "opencl_svm")
places = [(name, {device} if name[0] == "o" else 0) for name in names]
made = [hamr.Buffer(1000 + i, "u1", name, fill=i, device=at) for i, (name, at) in enumerate(places)]
made += [b.copy(name, device=at) for b in made for name, at in places]
for b in made:
    print("made", b.allocator.name, hex(b.ptr), flush=True)
for b in made[::-1] if {last} else made:
    b.close()
assert not any(hamr.stats()["allocators"][name]["live"] for name in names)
"""


@pytest.mark.parametrize("last", [False, True])
def test_none_frees_the_others(device, last):
    output = run_code(BOTH.format(device=device, last=last), env={"SYCL_UR_TRACE": "2"})
    made = re.findall(r"made (\w+) (0x[0-9a-f]+)", output)
    freed = re.findall(r"urUSMFree\(.*?\.pMem = (0x[0-9a-f]+)", output)
    of_sycl = sorted(at for name, at in made if name.startswith("sycl"))
    assert len(of_sycl) == 3 + 15
    assert sorted(at for at in freed if at in of_sycl) == of_sycl, "each once"
    assert not {at for name, at in made if name.startswith("opencl")} & set(freed)
