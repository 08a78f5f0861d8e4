"""A random run over two devices and two libraries, against NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest

import hamr
from tests.gpu.gpu_delays import hold, keep
from tests.support.processes import scaled

STEPS = scaled(12000, 300)
N = 4096
PLACES = [
    (a, d) for a in ("cuda", "cuda_async", "cuda_uva") for d in (0, 1)
] + [("malloc", -1), ("cuda_host", -1)]  # fmt: skip


class Walk:
    """Some buffers, each with what it must hold. Libraries change them on the streams they have."""

    def __init__(self, cp, torch, seed):
        self.cp, self.torch, self.random = cp, torch, random.Random(seed)
        self.streams = [
            [keep(self.on(d, lambda: cp.cuda.Stream(non_blocking=True))) for _ in range(2)]
            for d in (0, 1)
        ]
        self.held = [self.new() for _ in range(5)]

    def on(self, device, make):
        with self.cp.cuda.Device(device):
            return make()

    def stream(self, device):
        """The default one of the device, or one of its own."""
        return self.random.choice([None, None, *self.streams[max(device, 0)]])

    def new(self):
        allocator, device = self.random.choice(PLACES)
        value = np.float32(self.random.randrange(1, 1000))
        if self.random.random() < 0.3:
            return self.adopted(max(device, 0), value)
        given = {} if device < 0 else {"device": device, "stream": self.stream(device)}
        b = hamr.Buffer(N, "f4", allocator, fill=float(value), transfer="async", **given)
        return [b, np.full(N, value)]

    def adopted(self, device, value):
        if self.random.random() < 0.5:
            tensor = self.torch.full((N,), float(value), device=f"cuda:{device}")
            return [hamr.buffer(tensor), np.full(N, value)]
        with self.cp.cuda.Device(device):
            return [hamr.buffer(self.cp.full(N, value, "f4")), np.full(N, value)]

    def step(self):
        i, j = self.random.sample(range(len(self.held)), 2)
        (a, model), (b, other) = self.held[i], self.held[j]
        kind = self.random.randrange(10)
        if kind == 0:
            self.held[i] = self.new()
        elif kind == 1:
            a[...] = b
            model[...] = other
        elif kind == 2:
            k = self.random.randrange(1, 4)
            a[::k] = b[::k]
            model[::k] = other[::k]
        elif kind == 3:
            allocator, device = self.random.choice(PLACES)
            more = {} if device < 0 else {"device": device}
            self.held[i] = [a.copy(allocator, **more), model.copy()]
        elif kind == 4:
            self.held[i] = [b.astype("f8").astype("f4"), other.copy()]
        elif kind == 5 and a.allocator.name in ("cuda", "cuda_async", "cuda_uva"):
            a.set_stream(self.stream(a.device), "async")
        elif kind == 6:
            self.change_by_cupy(a, model)
        elif kind == 7:
            self.look_by_cupy(a, model)
        elif kind == 8:
            self.look_by_torch(a, model)
        else:
            found = np.asarray(a.get_host_accessible())
            assert np.array_equal(found, model), ("the host", a, a.stream, found[:3], model[:3])

    def change_by_cupy(self, a, model):
        """In place, on the buffer's own stream, which is how hamr knows of it."""
        if a.allocator.name not in ("cuda", "cuda_async", "cuda_uva"):
            return
        with self.cp.cuda.Device(a.device):
            handle = self.cp.cuda.ExternalStream(int(a.stream) or 1)
            with handle:
                hold(self.cp, handle, 100)
                self.cp.asarray(a.get_cuda_accessible(a.device))[...] += 1
        model += 1

    def look_by_cupy(self, a, model):
        device = self.random.randrange(2)
        with self.cp.cuda.Device(device):
            side = self.random.choice([self.cp.cuda.Stream.null, *self.streams[device]])
            with side:
                seen = self.cp.asarray(a.get_cuda_accessible(device)).copy()
            found = self.cp.asnumpy(seen, stream=side)
        assert np.array_equal(found, model), ("CuPy", device, a, found[:3], model[:3])

    def look_by_torch(self, a, model):
        device = self.random.randrange(2)
        torch = self.torch
        with torch.cuda.device(device):
            handle = self.random.choice(self.streams[device])
            with torch.cuda.stream(torch.cuda.ExternalStream(handle.ptr)):
                found = torch.from_dlpack(a.get_cuda_accessible(device)).clone().cpu().numpy()
        assert np.array_equal(found, model), ("torch", device, a, found[:3], model[:3])


@pytest.mark.multigpu
@pytest.mark.parametrize("seed", range(5))
def test_every_value_is_what_numpy_has(cupy_library, torch_library, seed):
    walk = Walk(cupy_library.module, torch_library.module, seed)
    for number in range(STEPS // 5):
        try:
            walk.step()
        except Exception as error:
            raise AssertionError(f"step {number} of seed {seed}") from error
