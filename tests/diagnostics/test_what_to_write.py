"""What newcomers type first, and what the errors tell them to write instead."""

import re

import numpy as np
import pytest

import hamr


def told(error, *texts):
    """What a block raises, with all of the texts in its message."""
    return pytest.raises(error, match="".join(f"(?=.*{re.escape(text)})" for text in texts))


@pytest.fixture
def b():
    return hamr.buffer(np.arange(6.0))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("sum", "write numpy.asarray(b).sum()"),
        ("sort", 'write with b.on_host("rw") as a: a.sort()'),
        ("flatten", "write b.copy().ravel()"),
        ("swapaxes", "write b.transpose("),
        ("permute", "write b.transpose("),
        ("unsqueeze", "write b[None]"),
        ("flat", "write b.ravel()"),
        ("flags", "write b.readonly, b.is_contiguous or b.is_fortran_contiguous"),
        ("ctypes", "write b.ptr"),
        ("numpy", "write numpy.asarray(b)"),
        ("cpu", 'write b.copy(device="cpu")'),
        ("cuda", 'write b.copy(device="cuda")'),
        ("to", 'write b.copy(device="cuda")'),
        ("extend", "write b.append("),
        ("numel", "write b.size()"),
        ("real", "write numpy.asarray(b).real"),
    ],
)
def test_names_of_other_arrays_say_what_to_write(b, name, written):
    assert not hasattr(b, name)
    with told(AttributeError, written):
        getattr(b, name)


def test_names_that_only_raise_are_not_listed(b):
    handle = b.get_host_accessible()
    for array in (b, handle, hamr.Buffer, hamr.Handle):
        listed = dir(array)
        assert {"shape", "copy", "item"} <= set(listed)
    for array in (b, handle):
        assert not [name for name in dir(array) if not hasattr(array, name) and name[0] != "_"]


def test_names_that_a_subclass_has_are_listed():
    class Flagged(hamr.Buffer):
        def flatten(self):
            return self.ravel()

    flagged = Flagged(3)
    flagged.flags = "C"
    assert {"flags", "flatten"} <= set(dir(flagged))
    assert "sum" not in dir(flagged)


def test_arithmetic_of_an_element_says_how_to_change_it(b):
    with told(TypeError, "write numpy.asarray(b) + x"):
        b + 1
    with told(TypeError, "write b[i] = b[i].item() + x"):
        b[0] += 1
    with told(TypeError, "write b[...] = b.item() + x"):
        b[0, ...] += 1
    with told(TypeError, "write b.item() * x"):
        b[0] * 2


def test_a_handle_that_was_closed_is_not_called_a_buffer(b):
    with b.get_host_accessible() as handle:
        pass
    for use in (len, np.asarray, lambda h: h.shape, lambda h: h.copy(), lambda h: h[0], memoryview):
        with told(hamr.FreedBuffer, "the handle was closed", "with"):
            use(handle)
    b.close()
    with told(hamr.FreedBuffer, "the buffer was closed"):
        b.copy()


@pytest.mark.parametrize(
    ("call", "error", "texts"),
    [
        (lambda: hamr.zeros(2, 3), TypeError, ["dtype is 3", "a shape of several", "(2, 3)"]),
        (lambda: hamr.array([1], "cuda"), TypeError, ["dtype 'cuda'", "allocator='cuda'"]),
        (lambda: hamr.zeros(3, "cpu"), TypeError, ["dtype 'cpu'", "device='cpu'"]),
        (lambda: hamr.zeros(3).resize("a"), TypeError, ["n is 'a'", "an int or a tuple of int"]),
        (lambda: hamr.zeros(3).move("host"), ValueError, ["'host'", "the host's is malloc"]),
        (lambda: hamr.zeros(3).copy("cpu"), ValueError, ["'cpu'", "the host's is malloc"]),
        (lambda: hamr.zeros(3, allocator="gpu"), ValueError, ["'gpu'", "a GPU's is cuda"]),
        (lambda: hamr.buffer(np.zeros(3), "f4"), TypeError, ["stream is 'f4'", "dtype='f4'"]),
        (lambda: hamr.buffer(None), TypeError, ["an array of NumPy"]),
        (lambda: hamr.zeros(3).on("cpu", "r"), ValueError, ["space is 'cpu'", "host, cuda"]),
    ],
)
def test_wrong_arguments_say_what_to_write(call, error, texts):
    with told(error, *texts):
        call()


@pytest.mark.parametrize("name", ["concatenate", "sin", "arange"])
def test_what_numpy_makes_is_shared(name):
    with told(AttributeError, f"write hamr.buffer(numpy.{name}(...))"):
        getattr(hamr, name)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8"])
def test_element_types_are_names(name):
    with told(AttributeError, f"write '{name}'"):
        getattr(hamr, name)


def test_one_element_prints_as_a_number(b):
    assert str(b[3]) == f"{b[3]}" == "3"
    assert str(b[3:4]) == "{3}"
    assert str(hamr.array(1 + 2j)) == "(1+2j)"
    assert str(hamr.array(True)) == "True"


def test_an_access_outside_with_says_how_to_use_it(b):
    assert "with" in repr(b.on_host("rw"))
    for use in (lambda a: a[0], lambda a: a.sum()):
        with told((TypeError, AttributeError), "with b.on_host("):
            use(b.on_host("r"))


def test_the_bench_says_what_its_floor_is():
    from hamr._benchmark import tables

    row = {"operation": "numpy.asarray(b)", "ns": 1.0, "ratio": 1.0}
    threads = {"one_thread_ns": 1.0, "eight_threads_ns": 1.0, "ratio": 1.0}
    names = "import_ms", "import_MiB", "first_buffer_ms", "first_buffer_MiB", "ratio_to_ctypes"
    cost = dict.fromkeys(names, 1.0)
    measured = {"machine": {}, "operations": [row], "dlpack": [], "threads": threads}
    empty = {"absent": {}, "groups": [], "curves": [], "targets": [], "skipped": [], "seconds": 1}
    lines = tables.lines_of({**measured, "import": cost, **empty})
    assert any(line.startswith("x floor: ") for line in lines)
    assert any("1.00 x import ctypes" in line for line in lines)
