"""Walks at random over views, assignments and readings on the host, beside NumPy."""

import pytest

import hamr
from tests.support import random_views
from tests.support.processes import scaled

A = hamr.Allocator


@pytest.mark.parametrize("allocators", [[A.malloc, A.cpp]], ids=["host"])
@pytest.mark.parametrize("first", [0, 10_000_000])
def test_views_are_numpys(allocators, first):
    for seed in range(first, first + scaled(300)):
        random_views.generate(seed, allocators)


def test_a_failing_walk_is_cut_to_what_matters(monkeypatch):
    """The steps of the message make the same fault again."""
    make = hamr.Buffer.squeeze
    monkeypatch.setattr(hamr.Buffer, "squeeze", lambda b, *axes: make(b[::-1], *axes))

    def walk():
        for seed in range(1000):
            random_views.generate(seed, [A.malloc])

    with pytest.raises(random_views.Differs, match=r"(?s)^seed \d+:\n.*'squeeze'.*beside") as found:
        walk()
    assert len(str(found.value).splitlines()) < 20
