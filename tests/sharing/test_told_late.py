"""Ordinary memory that is only handed on: the core hears of it when it first has to do with it."""

import gc
import weakref

import numpy as np
import pytest

import hamr
from hamr import _native
from tests.support.processes import run_code


class Interface:
    """An object whose only protocol is __array_interface__."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


def waiting():
    return dict(_native.waiting()).get(hamr.Allocator.malloc, 0)


def adopted():
    return hamr.stats()["allocators"].get("malloc", {"adopted": 0})["adopted"]


@pytest.mark.parametrize("made", [lambda a: a, Interface], ids=["ndarray", "__array_interface__"])
def test_a_buffer_is_counted_once_before_and_after_the_core_knows_it(made):
    array = np.arange(6.0).reshape(2, 3)
    before = waiting(), adopted(), hamr.stats()["references"]
    b = hamr.buffer(made(array))
    assert waiting() == before[0] + 1
    assert (adopted(), hamr.stats()["references"]) == (before[1] + 1, before[2] + 1)
    assert np.shares_memory(np.asarray(b.get_host_accessible()), array)
    assert waiting() == before[0] + 1  # it was handed on
    b.fill(7)
    assert waiting() == before[0]
    assert (adopted(), hamr.stats()["references"]) == (before[1] + 1, before[2] + 1)
    assert (array == 7).all()
    del b
    gc.collect()
    assert (waiting(), adopted(), hamr.stats()["references"]) == before


def test_the_owner_is_let_go_without_the_core():
    array = np.arange(3.0)
    alive, before = weakref.ref(array), waiting()
    b = hamr.buffer(array)
    del array
    assert alive() is not None
    view = b[1:]
    b.close()
    assert np.asarray(view).tolist() == [1, 2]
    del view
    gc.collect()
    assert alive() is None
    assert waiting() == before


def test_operands_do_not_wait():
    b, before = hamr.Buffer(3), waiting()
    b[...] = np.arange(3.0)
    b.append(np.arange(2))
    assert waiting() == before
    assert b.get().tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("data", [0, 4])
def test_the_core_refuses_what_lies_nowhere(data):
    """Elements from address 0 on, or below it."""
    array = Interface(np.arange(3.0))
    array.__array_interface__ = {
        "typestr": "<f8", "shape": (3,), "strides": (-2,), "data": (data, False), "version": 3
    }  # fmt: skip
    with pytest.raises(ValueError, match="data"):
        hamr.buffer(array)


def test_the_core_is_told_at_once_while_it_traces():
    code = "import hamr, numpy as np\na = np.zeros(321, 'u1')\nkept = hamr.buffer(a)\n"
    assert "adopt malloc device -1 size 321" in run_code(code, env={"HAMR_VERBOSE": "1"})
    later = "hamr.set_verbose(1)\nmore = hamr.buffer(np.zeros(654, 'u1'))\n"
    printed = run_code(code + later)
    assert "size 654" in printed
    assert "size 321" not in printed


def test_a_forked_child_has_the_memory():
    run_code("""
import os
import numpy as np
import hamr

hamr.Buffer(1)
array = np.arange(1000.0)
b = hamr.buffer(array)
pid = os.fork()
if not pid:
    status = 1
    try:
        assert hamr.stats()["references"] == 0
        b.fill(5)
        assert (array == 5).all() and hamr.stats()["references"] == 1
        b.close()
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(pid, 0)[1] == 0
assert array[1] == 1 and hamr.stats()["references"] == 1
""")


def test_a_second_object_of_a_kind_is_shared_without_an_import():
    """An import statement takes half a microsecond though its module is there.

    In a process of its own: once a stream's block was entered, Python looks for such blocks.
    """
    run_code("""
import builtins
import numpy as np
import hamr

class Interface:
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__

array = np.arange(3.0)
hamr.buffer(Interface(array))
names, found = [], builtins.__import__
def noting(name, *arguments, **named):
    names.append(name)
    return found(name, *arguments, **named)
builtins.__import__ = noting
b = hamr.buffer(Interface(array))
builtins.__import__ = found
assert b.source_protocol == "__array_interface__"
assert names == [], names
""")
