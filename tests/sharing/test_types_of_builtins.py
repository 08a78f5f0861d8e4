"""Types that say they are builtins, or a library's, and are not: asked for every protocol."""

import array
import mmap

import numpy as np
import pytest

import hamr
from hamr._protocols import dispatch

NAMED = ["builtins", "numpy", "array", "mmap", "numpy.linalg"]


def made_by_exec(body, module):
    """A class as exec() makes it where a namespace says no module, or as compilers make it."""
    names = {"np": np}
    exec(body, names)  # its builtins are those of the interpreter: so is its __module__
    made = names["Offering"]
    assert made.__module__ == "builtins"
    made.__module__ = module
    return made


@pytest.mark.parametrize("module", NAMED)
def test_dlpack(module):
    kind = made_by_exec(
        """class Offering:
    def __init__(self, x): self.x = x
    def __dlpack__(self, **k): return self.x.__dlpack__(**k)
    def __dlpack_device__(self): return self.x.__dlpack_device__()""",
        module,
    )
    for _ in range(2):
        shared = hamr.buffer(kind(np.arange(3.0)))
        assert (shared.source_protocol, str(shared)) == ("__dlpack__", "{0, 1, 2}")


@pytest.mark.parametrize("module", NAMED)
def test_cuda(module):
    kind = made_by_exec(
        """class Offering:
    @property
    def __cuda_array_interface__(self): raise ZeroDivisionError("asked")""",
        module,
    )
    with pytest.raises(TypeError, match="__cuda_array_interface__ raises ZeroDivisionError: asked"):
        hamr.buffer(kind())


@pytest.mark.parametrize("module", NAMED)
def test_arrow(module):
    kind = made_by_exec(
        """class Offering:
    def __init__(self, x): self.x = x
    def __arrow_c_array__(self, requested_schema=None): return self.x.__arrow_c_array__()""",
        module,
    )
    shared = hamr.buffer(kind(hamr.Buffer(3, "i4", fill=7)))
    assert (shared.source_protocol, str(shared)) == ("__arrow_c_array__", "{7, 7, 7}")


def test_the_librarys_own_types_need_no_look():
    with mmap.mmap(-1, 8) as pages:
        for obj in (
            bytes(8), bytearray(8), memoryview(bytes(8)), array.array("d", [1]), pages,
            np.zeros(3), np.float64(1), np.zeros(3).view(np.matrix),
        ):  # fmt: skip
            dispatch.plain_types.discard(type(obj))
            shared = hamr.buffer(obj)
            assert shared.source_protocol == "buffer"
            assert type(obj) in dispatch.plain_types
            shared.close()
            del shared


def test_a_name_that_is_taken():
    """A class of the same name as one of the module's."""
    bytes_too = type("bytes", (), {"__array_interface__": np.zeros(3).__array_interface__})
    bytes_too.__module__ = "builtins"
    hamr.buffer(bytes_too())
    assert bytes_too not in dispatch.plain_types
