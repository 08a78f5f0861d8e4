"""The service of examples/weights_server; tests.store.weights_walk is the long walk."""

import importlib
import random

import numpy as np
import pytest

from tests.support.processes import scaled

pytest.importorskip("safetensors")

from tests.store.weights_walk import walk

worker = importlib.import_module("worker")  # of the example, whose folder the walk has found


def test_whatever_is_killed_one_copy_serves():
    walk(scaled(6, 4), 4 << 20, None, random.randrange(1 << 30))


@pytest.fixture
def weights(client):
    client.put_group({"w": np.arange(6, dtype="f4").reshape(2, 3), "bias": np.ones(2)}, name="w")
    return worker.Weights(client.get_group("w"))


def test_a_product(weights):
    assert weights.product(*weights.operands("w", [1, 2, 3])) == [8, 26]


@pytest.mark.parametrize(
    ("path", "vector", "error"),
    [
        ("w", [1, 2], ValueError),
        ("w", 1, ValueError),
        ("w", "text", ValueError),
        ("w", None, ValueError),
        ("w", [[1, 2, 3]], ValueError),
        ("w", [1, [2], 3], ValueError),
        ("w", {}, TypeError),
        ("w", [1, 2, 10**400], OverflowError),
        ("bias", [1], ValueError),
        ("none", [1], KeyError),
        ([], [1], TypeError),
    ],
)
def test_what_a_request_has_wrong(weights, path, vector, error):
    with pytest.raises(error):
        weights.operands(path, vector)
