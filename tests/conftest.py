"""What every test shares: Hypothesis settings, and fixtures for places and element types."""

import gc
import importlib.util
import os
import signal
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest

from tests.support import emulation

# Before hamr is first used, with HAMR_CHECK when it is imported: it looks for the driver once.
emulation.choose()
os.environ.setdefault("HAMR_TUNING", "0")  # what somebody measured here says nothing to tests

import hamr  # noqa: E402
from tests.support import producers  # noqa: E402

#: Paths whose tests may come out otherwise on another version of Python, since it is CPython
#: that acts there: it imports, calls the C extension's slots, collects, forks, switches threads,
#: ends and pickles. What is left is Go's, which one build serves to every version; and fuzzing,
#: which asks C what it refuses.
EACH_PYTHON = (
    "c/test_with_python.py",
    "concurrency",
    "hetero",
    "lifetime",
    *("package/test_c_interface.py", "package/test_examples.py", "package/test_import.py"),
    *("package/test_stubs.py", "package/test_without_numpy.py"),
    "sharing/array_interface",
    "sharing/arrow",
    "sharing/buffer_protocol",
    "sharing/dlpack",
    "sharing/test_foreign_memory.py",
    "transport/test_pickling.py",
    "upstream/test_upstream_defects.py",
    "cuda/test_cuda_dlpack_release.py",
    "cuda/test_cuda_fork.py",
    "cuda/test_cuda_interface.py",
    "cuda/test_cuda_lifetime.py",
)
#: Paths whose tests take long and say the same with any number of emulated devices, and with or
#: without kernels, or choose these themselves.
ONE_CONFIGURATION = (
    *("cuda/test_cuda_bench.py", "cuda/test_cuda_calls.py", "cuda/test_cuda_checking.py"),
    *("cuda/test_cuda_check_uses.py", "cuda/test_cuda_collector.py", "cuda/test_cuda_cpp.py"),
    "cuda/test_cuda_copy_blocks.py",
    *("cuda/test_cuda_copy_many.py", "cuda/test_cuda_documents.py", "cuda/test_cuda_fork.py"),
    *("cuda/test_cuda_fortran.py", "cuda/test_cuda_growth.py"),
    *("cuda/test_cuda_interface_fuzz.py", "cuda/test_cuda_limits.py"),
    *("cuda/test_cuda_interrupts.py", "cuda/test_cuda_out_of_memory.py"),
    "cuda/test_cuda_other_pools.py",
    *("cuda/test_cuda_pinned.py", "cuda/test_cuda_stress.py", "cuda/test_cuda_tuning.py"),
    *("cuda/test_cuda_hetero_absent.py", "cuda/test_cuda_hetero_bench.py"),
    *("cuda/test_cuda_share.py", "cuda/test_cuda_share_ends.py", "cuda/test_cuda_store_cpp.py"),
    "cuda/test_cuda_library_walk.py",
    "cuda/test_cuda_pygpu_bench.py",
    "cuda/test_cuda_pygpu_compiling.py",
    *("cuda/test_cuda_pygpu_examples.py", "cuda/test_cuda_pygpu_kernel_examples.py"),
    "cuda/test_cuda_store_bench.py",
)
#: Paths whose tests ask what is kept and handed out next, which calls of the driver a release
#: makes, or when the core is told of memory, hold a stream meanwhile, or ask what importing hamr
#: loads: HAMR_CHECK has it otherwise.
FREED_AGAIN = (
    *("cuda/test_cuda_calls.py", "cuda/test_cuda_errors.py", "cuda/test_cuda_granted.py"),
    *("cuda/test_cuda_libraries.py", "cuda/test_cuda_library_hooks.py", "cuda/test_cuda_limits.py"),
    *("cuda/test_cuda_pinned.py", "cuda/test_cuda_release_errors.py", "cuda/test_cuda_reuse.py"),
    *("concurrency/test_fork.py", "lifetime/test_address_space.py", "package/test_import.py"),
    "sharing/test_told_late.py",
    *("package/test_documents.py", "sharing/dlpack/test_dlpack_exchange.py"),
)
HERE = Path(__file__).resolve().parent

# One process has one driver. Without a choice the tests are those of the host.
collect_ignore = [
    *([] if emulation.CHOSEN else ["cuda"]),
    *([] if emulation.CHOSEN == "driver" else ["gpu"]),
    *([] if os.environ.get("HAMR_TEST_TRIAL") else ["trial"]),
    *([] if emulation.HIP else ["hip"]),
]


def pytest_addoption(parser):
    parser.addoption(
        "--repeat", type=int, default=1, metavar="N", help="run each chosen test N times"
    )


def pytest_generate_tests(metafunc):
    """For what fails now and then: --repeat 50, with -k or the test's name."""
    times = metafunc.config.getoption("repeat")
    if times > 1:
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(1, times + 1), ids="run {}".format)


def pytest_configure():
    """HAMR_TEST_REQUIRE names packages whose tests may not be skipped for want of them."""
    required = [name for name in os.environ.get("HAMR_TEST_REQUIRE", "").split(",") if name]
    missing = [name for name in required if importlib.util.find_spec(name) is None]
    if missing:
        raise pytest.UsageError(f"HAMR_TEST_REQUIRE names what is not installed: {missing}")
    named = (*EACH_PYTHON, *ONE_CONFIGURATION, *FREED_AGAIN)
    stale = [name for name in named if not (HERE / name).exists()]
    if stale:
        raise pytest.UsageError(f"tests/conftest.py names what is not there: {stale}")


@pytest.hookimpl(tryfirst=True)  # before -m chooses by the markers
def pytest_collection_modifyitems(items):
    for item in items:
        path = item.path.relative_to(HERE)
        if "fuzz" in path.name:
            continue
        if any(path.is_relative_to(named) for named in EACH_PYTHON):
            item.add_marker(pytest.mark.each_python)
        if any(path.is_relative_to(named) for named in ONE_CONFIGURATION):
            item.add_marker(pytest.mark.one_configuration)
        if any(path.is_relative_to(named) for named in FREED_AGAIN):
            item.add_marker(pytest.mark.freed_again)


def pytest_collection_finish():
    freeze()


def freeze():
    """What is there now stays: looking through thousands of tests is most of a gc.collect()."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if nextitem is not None and nextitem.path != item.path:
        freeze()  # what was imported, and the reports until here


hypothesis.settings.register_profile(
    "hamr",
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "long", hypothesis.settings.get_profile("hamr"), max_examples=500
)  # pytest --hypothesis-profile=long
hypothesis.settings.load_profile("hamr")


@pytest.fixture(autouse=True, scope="module")
def no_misuse():
    """With HAMR_CHECK=raise nobody used memory wrongly in a module's tests."""
    yield
    if os.environ.get("HAMR_CHECK") == "raise":
        hamr.check_memory()
        if emulation.CHOSEN == "emulator":  # which tells of all work
            assert not any(hamr.checked_backends().values())


@pytest.fixture(autouse=True)
def races(request, no_misuse):
    """What the marker races says of a test is no misuse of others'."""
    yield
    if os.environ.get("HAMR_CHECK") == "raise" and request.node.get_closest_marker("races"):
        with suppress(hamr.MemoryMisuse):
            hamr.check_memory()


@pytest.fixture
def ctrl_c():
    """SIGINT raises KeyboardInterrupt, in a run that a shell has in the background, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=producers.ALLOCATORS, ids=lambda a: a.name)
def allocator(request) -> hamr.Allocator:
    return request.param


@pytest.fixture(params=producers.DTYPES)
def dtype(request) -> str:
    return request.param


@pytest.fixture
def core(monkeypatch):
    """A record in place of the Go core, for streams, events and devices."""
    from tests.support import recorded_core

    with recorded_core.in_place_of_the_core(monkeypatch) as made:
        yield made
