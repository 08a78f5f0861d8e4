import pytest


@pytest.fixture(autouse=True)
def no_accelerators(monkeypatch):
    """Events have no device, whatever the machine has."""
    monkeypatch.setenv("HAMR_ACCELERATORS", "none")
