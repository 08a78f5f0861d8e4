"""Scheduling where the driver has no device, where there is none, and where none may be used.

Each way runs in a process of its own; with the emulator the log shows that no device was asked for
work.
"""

import pytest

from tests.cuda import driver
from tests.support import producers

WAYS = {
    # NVIDIA's OpenCL is another way to the same device.
    "no driver": {
        "HAMR_CUDA_LIBRARY": "/nonexistent/libcuda.so.1",
        "HAMR_OPENCL_LIBRARY": "/nonexistent/libOpenCL.so.1",
    },
    "no device": {"HAMR_EMULATOR_DEVICES": "0"},
    "none may be used": {"HAMR_ACCELERATORS": "none"},
}


@pytest.fixture(autouse=True)
def needs_device():
    """These tests need none."""


@pytest.fixture(params=WAYS)
def run(request):
    if request.param == "no device" and not driver.EMULATED:
        pytest.skip("no other number of devices with a real driver")

    def run(code):
        head = "import hamr, numpy as np\nfrom hamr import hetero\n"
        return producers.run_python(head + code, **WAYS[request.param]).stdout

    return run


def test_choosers_give_nothing_and_filters_say_no(run):
    run("""
import os
# What an argument names may be used, whatever the environment says.
among = None if os.environ.get("HAMR_ACCELERATORS") else ["cuda"]
assert not [place for place in hetero.accelerators() if place.startswith("cuda")]
for policy in ("round_robin", "free_memory", "least_pending"):
    chooser = hetero.DeviceChooser(policy=policy, among=among)
    assert [chooser.choose(key) for key in range(5)] == [None] * 5
    assert not hetero.device_filter(chooser.choose(0))
""")


def test_a_switch_takes_the_processor_and_says_so_without_one(run):
    run("""
switch = hetero.Switch(cuda=lambda x: "device", cpu=lambda x: f"host {x}")
assert (switch.name, switch(3)) == ("cpu", "host 3")
try:
    hetero.Switch(cuda=print)
except hamr.BackendUnavailable as error:
    assert "cuda" in str(error)
else:
    raise AssertionError("it was chosen")
assert hetero.first_available(None, None, 7) == 7
""")


def test_contexts_and_kept_memory_are_refused_by_name(run):
    run("""
for make in (lambda: hetero.ScopedContext(None), lambda: hetero.Token(None)):
    try:
        make()
    except (TypeError, ValueError):
        continue
    raise AssertionError("it was made")
import os
if os.environ.get("HAMR_ACCELERATORS") == "none":
    raise SystemExit  # a device that is named may be used
for arguments in ({}, {"device": 0}, {"device": "cuda:0"}):
    try:
        hetero.CachingAllocator(**arguments)
    except (hamr.BackendUnavailable, ValueError) as error:
        assert "cuda" in str(error) or "accelerator" in str(error), error
    else:
        raise AssertionError(f"it was made: {arguments}")
""")


def test_a_pipeline_falls_back_in_every_event(run):
    output = run("""
import os
from hamr.hetero import Pipeline, Producer, module

def on_host(raw):
    return np.asarray(raw) * 2

class Doubled(Producer):
    name, kind, inputs, fallback = "doubled", "device", ("raw",), staticmethod(on_host)
    def begin(self, place):
        raise AssertionError("begun on a device")
    def produce(self, event, ctx):
        raise AssertionError("run on a device")

@module()
def raw(event):
    return np.full(3, event.item)

@module(kind="external", fallback=lambda doubled: float(doubled.sum()))
def total(doubled, ctx):
    raise AssertionError("run on a device")

chooser = hetero.DeviceChooser(among=["cuda"] if not os.environ.get("HAMR_ACCELERATORS") else None)
chain = Pipeline([raw, Doubled(), total], streams=4, chooser=chooser)
results = chain.run(range(50))
assert [result["total"] for result in results] == [6.0 * n for n in range(50)]
assert {result.place for result in results} == {None}
assert chain.report.failed == 0
print(sorted(chain.report.modules))
""")
    assert "total" in output
