"""Pipelines at random on devices, beside a sequential model, with a driver that fails, too."""

import random
import threading

import numpy as np
import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.cuda.hetero_modules import enqueue_copy
from tests.cuda.test_cuda_hetero_faults import DRIVER_FAULTS, nothing_leaks
from tests.hetero.random_pipelines import Run, run_walk
from tests.support.processes import scaled

N = 3
FAULTS = [
    *DRIVER_FAULTS,
    ("cuStreamWaitEvent", driver.ILLEGAL_ADDRESS),
    ("cuStreamCreate", driver.OUT_OF_MEMORY),
    ("cuMemHostAlloc", driver.OUT_OF_MEMORY),
    ("cuMemcpyDtoHAsync_v2", driver.ILLEGAL_ADDRESS),
    ("cuCtxSetCurrent", driver.ILLEGAL_ADDRESS),
]
__all__ = ["nothing_leaks"]

pytestmark = pytest.mark.usefixtures("cuda_alone")


class Chooser:
    """Of some streams of events there is a device, and of some there is none."""

    def __init__(self, without):
        self.chooser, self.without = hetero.DeviceChooser(), without

    def choose(self, key):
        return None if key in self.without else self.chooser.choose(key)


class Devices:
    def chooser(self, chance):
        if chance.random() < 0.5:
            return None
        if chance.random() < 0.5:
            return hetero.DeviceChooser(chance.choice(["round_robin", "least_pending"]))
        return Chooser(set(chance.sample(range(8), 3)))

    def kernel(self, source, offset, ctx):
        made = hamr.Buffer(N, "f4", "cuda_async", device=ctx.device, transfer="async")
        assert made.stream == ctx.stream
        given = 0 if source is None else source.ptr
        driver.write_late(ctx.stream.ptr, made.ptr, N, offset, given, 1, device=ctx.device)
        return made

    def copy(self, source, ctx):
        out = np.asarray(hamr.Buffer(N, "f4", "cuda_host", fill=-1).get_host_accessible())
        enqueue_copy(out, source, ctx)
        return out

    def memory(self):
        return hamr.Buffer(10, "f4", "cuda_async", fill=1, transfer="async")


@pytest.mark.parametrize("seed", range(scaled(200, 20)))
def test_a_run_at_random(emulator, seed, tmp_path):
    before = driver.current_context()
    run, chance = Run(seed, Devices()), random.Random(seed)
    fault = chance.random() < 0.3 and (*chance.choice(FAULTS), chance.randrange(3))

    def on_result(count):
        if fault and count == fault[2] + 1:
            emulator.fail(fault[0], chance.randrange(1, 10), fault[1])
        return fault and count > fault[2]

    run_walk(run, tmp_path, on_result)
    emulator.stop_failing()
    assert driver.current_context() == before
    assert not [t for t in threading.enumerate() if t.name.startswith("hamr-pipeline")]
