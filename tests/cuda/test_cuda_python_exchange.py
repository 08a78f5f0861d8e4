"""hamr/python.h on devices: memory, stream and order go along."""

import gc

import numpy as np
import pytest

import hamr
from tests.support.c_programs import PROGRAMS
from tests.support.extension_modules import compile_in_c, load, loading
from tests.support.processes import run_code


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return compile_in_c(PROGRAMS / "exchange.c", tmp_path_factory.mktemp("exchange"))


@pytest.fixture(scope="module")
def exchange(path):
    return load(path)


def address(buffer):
    return buffer.__cuda_array_interface__["data"][0]


@pytest.mark.parametrize("allocator", ["cuda", "cuda_async", "cuda_uva"])
def test_the_same_memory_of_a_device(allocator, exchange):
    stream = hamr.Stream(device=0)
    buffer = hamr.Buffer((2, 3), "float32", allocator, fill=2, stream=stream, transfer="async")
    facts = exchange.facts(buffer)
    assert facts[:4] == (address(buffer), "float32", buffer.allocator.value, buffer.owner)
    assert facts[4:6] == (buffer.transfer.value, stream.ptr)
    back = exchange.round_trip(buffer)
    assert address(back) == address(buffer)
    assert (back.allocator, back.owner, back.shape) == (buffer.allocator, buffer.owner, (2, 3))
    assert int(back.stream) == stream.ptr
    back[0] = 5
    assert np.asarray(buffer.get_host_accessible()).tolist() == [[5] * 3, [2] * 3]


def test_memory_of_a_device_lasts_as_long_as_c_has_it(exchange):
    gc.collect()
    before = hamr.stats()["references"]
    buffer = hamr.Buffer(1000, "uint8", "cuda", fill=7)
    exchange.keep(buffer)
    del buffer
    others = [hamr.Buffer(1000, "uint8", "cuda", fill=1) for _ in range(20)]
    assert (np.asarray(exchange.get_kept().get_host_accessible()) == 7).all()
    exchange.keep(None)
    del others
    gc.collect()
    assert hamr.stats()["references"] == before


FORKED = """
import os
import hamr
buffer = hamr.Buffer(3, "uint8", "cuda", fill=1)
m.keep(buffer)
pid = os.fork()
if not pid:
    refused = 0
    for call in (m.get_kept, lambda: m.facts(buffer)):
        try:
            call()
        except hamr.ForkError:
            refused += 1
    del buffer
    os._exit(refused)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
m.keep(None)
"""


def test_a_forked_child_is_refused(path):
    run_code(loading(path) + FORKED)
