"""Walks at random over views, assignments and readings in device memory, beside NumPy."""

import pytest

import hamr
from tests.support import random_views
from tests.support.processes import scaled

A = hamr.Allocator


def test_views_are_numpys(cuda_allocator):
    for seed in range(scaled(60)):
        random_views.generate(seed, [cuda_allocator])


@pytest.mark.parametrize("first", [10_000_000])
def test_memory_of_all_kinds(first):
    """A view of one kind is assigned to one of another."""
    for seed in range(first, first + scaled(120)):
        random_views.generate(seed, [A.malloc, A.cuda, A.cuda_async, A.cuda_uva, A.cuda_host])
