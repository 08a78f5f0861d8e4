"""A handle is its owner's: to close, and with what others make from it left whole."""

import numpy as np
import pytest

import hamr
from tests.support.processes import run_code


@pytest.mark.parametrize("dtype", ["f8", "bfloat16"])
@pytest.mark.parametrize("through", [lambda b: b, lambda b: b.get_host_accessible()])
def test_an_array_that_a_handle_makes_itself_outlives_it(through, dtype):
    before = hamr.stats()["references"]
    with through(hamr.Buffer(1000, dtype, fill=2)).get_host_accessible() as handle:
        array = handle.__array__()
    content = array.tobytes()
    refill = [hamr.Buffer(1000, dtype, fill=9) for _ in range(4)]
    assert array.tobytes() == content
    del refill
    assert hamr.stats()["references"] == before + 1
    del array, handle
    assert hamr.stats()["references"] == before


def test_the_memory_is_still_mapped():
    """Large blocks are the system's again as soon as they are freed."""
    run_code("""
import hamr
with hamr.Buffer(10**7, fill=2).get_host_accessible() as handle:
    array = handle.__array__()
assert array.sum() == 2 * 10**7
""")


@pytest.mark.parametrize("steps", [1, 2])
def test_each_handle_is_closed_by_itself(steps):
    first = again = hamr.Buffer(3, "i4", fill=1).get_host_accessible()
    for _ in range(steps):
        again = again.get_host_accessible()
    again.close()
    assert np.asarray(first).tolist() == [1, 1, 1]
    with pytest.raises(hamr.FreedBuffer):
        again.get_host_accessible()


def test_a_handle_of_a_handle_outlives_it():
    with hamr.Buffer(1000, fill=2).get_host_accessible() as first:
        second = first.get_host_accessible()
    refill = [hamr.Buffer(1000, fill=9) for _ in range(4)]
    assert np.asarray(second).sum() == 2000
    assert len(refill) == 4
