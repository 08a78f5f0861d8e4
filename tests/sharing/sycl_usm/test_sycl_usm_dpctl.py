"""__sycl_usm_array_interface__ both ways with dpctl's memory, and dpnp's arrays, on a device.

A CPU will do: test_sycl_usm_rules.py has the rules that need none.
"""

import pytest

from tests.support import sycl_runtime
from tests.support.processes import run_script

pytestmark = pytest.mark.libraries


@pytest.mark.skipif(bool(sycl_runtime.absent()), reason=sycl_runtime.absent())
@pytest.mark.parametrize(
    "case",
    [
        "zero_copy",
        "stays_alive",
        "device_memory",
        "other_producers",
        "views",
        "queues",
        "contexts",
        "wrong",
        "not_usm",
        "kept_until_the_end",
        "leaks",
    ],
)
def test_case(case):
    """Each case is a function of scripts/sycl_usm_cases.py, which says what it shows."""
    run_script("sycl_usm_cases", case, env=sycl_runtime.environment())


@pytest.mark.skipif(bool(sycl_runtime.absent()), reason=sycl_runtime.absent())
def test_without_hamrs_sycl():
    env = sycl_runtime.environment() | {"HAMR_SYCL_LIBRARY": "/nowhere/libsycl.so"}
    run_script("sycl_usm_cases", "without_library", env=env)


@pytest.mark.skipif(bool(sycl_runtime.dpnp_absent()), reason=sycl_runtime.dpnp_absent())
def test_dpnp():
    run_script("sycl_usm_cases", "dpnp_arrays", env=sycl_runtime.environment())
