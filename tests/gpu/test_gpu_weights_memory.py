"""The service of examples/weights_server on a GPU, with each library."""

import importlib
import random

import numpy as np
import pytest

import hamr.store
from tests.support.processes import scaled

pytest.importorskip("safetensors")

from tests.store.weights_walk import walk

worker = importlib.import_module("worker")  # of the example, whose folder the walk has found


def test_whatever_is_killed_one_copy_serves():
    walk(scaled(4, 1), 2 << 30, 0, random.randrange(1 << 30))


@pytest.mark.parametrize("library", ["cupy", "torch", "numpy"])
def test_products_of_each_library(tmp_path, monkeypatch, library):
    if library != "numpy":
        pytest.importorskip(library)
    find = worker.importlib.util.find_spec
    monkeypatch.setattr(
        worker.importlib.util, "find_spec", lambda name: find(name) if name == library else None
    )
    path = str(tmp_path / "store" / "socket")
    with hamr.store.Server(path, limit="host=64MiB"), hamr.store.connect(path) as client:
        matrix = np.arange(300 * 200).reshape(300, 200).astype("f4") % 7
        client.put_group({"w": matrix}, name="weights", device=0)
        weights = worker.Weights(client.get_group("weights"))
        assert weights.library == library
        vector = [float(n % 5) for n in range(200)]
        product = weights.product(*weights.operands("w", vector))
        assert product == (matrix @ np.array(vector, "f4")).tolist()
        del weights
