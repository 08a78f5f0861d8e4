"""A plugin of pytest's that has hamr give back what it keeps for reuse, so that a leak is one."""

import gc

import hamr


def pytest_unconfigure() -> None:
    """Give it back when all tests have ended."""
    gc.collect()
    hamr.trim()
