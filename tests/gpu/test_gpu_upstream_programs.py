"""Programs written for upstream run, whatever is imported first.

Upstream's crash where hamr is imported before CuPy: hence the matrix of orders.
"""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import upstream_programs as upstream
from tests.support.processes import launch

PROGRAMS = {
    "wind_speed": (upstream.WIND_SPEED, upstream.WIND_SPEED_OUTPUT),
    "taken_from_hamr": (upstream.TAKEN_FROM_HAMR, upstream.TAKEN_FROM_HAMR_OUTPUT),
    "given_to_hamr": (upstream.GIVEN_TO_HAMR, upstream.GIVEN_TO_HAMR_OUTPUT),
}

IMPORTS = {
    "hamr": "import hamr",
    "hamr used": "import hamr; hamr.Buffer(8, 'float32', 'cuda', fill=1)",
    "cupy": "import cupy",
    "cupy used": "import cupy; cupy.ones(8).sum()",
    "torch": "import torch; torch.ones(8, device='cuda').sum().item()",
    "numba": "from numba import cuda; import numpy; cuda.to_device(numpy.ones(8))",
    "jax": "import jax.numpy; jax.numpy.ones(8).sum().block_until_ready()",
}
SHORT = [
    "hamr, cupy",
    "cupy, hamr",
    "hamr used, cupy used",
    "cupy used, hamr used",
]
LONG = [
    *(f"{name}, hamr, cupy" for name in ("torch", "numba", "jax")),
    *(f"hamr, {name}, cupy" for name in ("torch", "numba", "jax")),
    *(f"hamr used, cupy, {name}" for name in ("torch", "numba", "jax")),
    "hamr, cupy, torch, numba, jax",
    "jax, numba, torch, cupy, hamr",
    "torch, jax, hamr used, numba, cupy",
]
CASES = [(program, order) for program in PROGRAMS for order in SHORT]
CASES += [("wind_speed", order) for order in LONG]
# And once more after the program: that all still work.
AFTER = "print('end'); "


def modules(order: str) -> list[str]:
    return [name.split()[0] for name in order.split(", ")]


def can_run(order: str) -> bool:
    return all(importlib.util.find_spec(name) for name in ["cupy", *modules(order)])


def run(case: tuple[str, str]) -> tuple[int, str]:
    program, order = case
    code = "\n".join(IMPORTS[name] for name in order.split(", "))
    code += PROGRAMS[program][0]
    code += AFTER + "; ".join(IMPORTS[name] for name in order.split(", ") if "used" not in name)
    return launch([sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", code], 240)


@pytest.fixture(scope="module")
def results(gpu_count):
    """All of them at once: most of what they take is importing."""
    cases = [case for case in CASES if can_run(case[1])]
    with ThreadPoolExecutor(6) as pool:
        futures = {case: pool.submit(run, case) for case in cases}
        return {case: future.exception() or future.result() for case, future in futures.items()}


@pytest.fixture
def result(request, results):
    case = request.param
    missing = [m for m in ["cupy", *modules(case[1])] if not importlib.util.find_spec(m)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    return case, results[case]


@pytest.mark.parametrize("result", CASES, indirect=True, ids=" after ".join)
def test_program(result):
    (program, _), outcome = result
    if isinstance(outcome, BaseException):
        raise outcome
    status, output = outcome
    assert status == 0, output[-4000:]
    assert output.partition("end\n")[0].endswith(PROGRAMS[program][1]), output[-4000:]
