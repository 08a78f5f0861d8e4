"""A chain of modules, CPU, GPU, GPU, CPU, for the tests of hamr.hetero.Pipeline."""

import numpy as np

import hamr
from hamr.hetero import Producer, module
from tests.cuda import driver

N = 1000


@module()
def raw(event):
    return float(event.item)


def made_by_kernel(source, scale, offset, ctx):
    """scale * source + offset, written late by a kernel on the context's stream."""
    made = hamr.Buffer(N, "f4", "cuda_async", device=ctx.device, transfer="async")
    driver.write_late(
        ctx.stream.ptr, made.ptr, N, offset, getattr(source, "ptr", 0), scale, device=ctx.device
    )
    return made


@module("device")
def loaded(raw, ctx):
    return made_by_kernel(None, 1, raw, ctx)


@module("device")
def scaled(loaded, ctx):
    return made_by_kernel(loaded, 3, 1, ctx)


@module("device")
def shifted(scaled, ctx):
    return made_by_kernel(scaled, 1, 5, ctx)


def page_locked():
    """Elements of the host's that a device copies to while the caller goes on."""
    return np.asarray(hamr.Buffer(N, "f4", "cuda_host", fill=0).get_host_accessible())


def enqueue_copy(out, source, ctx):
    """Copy to the host on the context's stream."""
    address = out.ctypes.data
    driver.do("cuMemcpyDtoHAsync_v2", address, source.ptr, out.nbytes, ctx.stream.ptr)


class Fetched(Producer):
    """The elements on the host, in memory that is there for the whole run."""

    kind, name = "external", "fetched"
    inputs = ("shifted",)

    def begin(self, place):
        self.out = page_locked()

    def acquire(self, event, ctx):
        enqueue_copy(self.out, event["shifted"], ctx)

    def produce(self, event, ctx):
        assert ctx is None
        assert event["shifted"].shape == (N,)
        return self.out.copy()


@module()
def total(fetched):
    assert (fetched == fetched[0]).all()
    return float(fetched[0])


@module(name="on_host", inputs=["raw"])
def on_host(raw):
    return np.full(N, 3 * raw + 6, "f4")


def chain(**others):
    """The modules, others in place of those of their names."""
    modules = {"raw": raw, "loaded": loaded, "scaled": scaled, "shifted": shifted}
    modules |= {"fetched": Fetched(), "total": total, **others}
    return list(modules.values())


def expected(number):
    return 3.0 * number + 6
