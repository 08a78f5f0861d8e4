"""Modules that many events go through at a time: on GPUs if there are any, else beside them.

A detector's readings are calibrated and smoothed on a device, come back as a spectrum, and their
peak is looked for. `python event_pipeline.py trace.json` also writes what Perfetto shows.
"""

import sys

import numpy as np

import hamr
from hamr import hetero
from hamr.hetero import Producer, module

N, BINS = 10_000, 32
LOWEST, HIGHEST = 787.5, 1587.5
MEMORY = {"cuda": "cuda_async", "hip": "hip_async"}
PAGE_LOCKED = {"cuda": "cuda_host", "hip": "hip_host"}


def chooser() -> hetero.DeviceChooser:
    """Devices in turns: HAMR_ACCELERATORS may name them, or say "none"."""
    here = [place for place in hetero.accelerators() if place.partition(":")[0] in MEMORY]
    return hetero.DeviceChooser(among=here)


def measured(number: int) -> np.ndarray:
    """What the detector read."""
    if number == 13:
        raise OSError("the file of run 13 is torn")
    return np.random.default_rng(number).normal(1000 + 100 * (number % 5), 30, N).astype("u2")


# The producer: it is not on a device, and runs on a thread.
@module()
def readings(event: hetero.Event) -> np.ndarray:
    return measured(event.item)


# The first of the device's: ctx says which, and on which stream. Nothing waits.
@module("device")
def uploaded(readings: np.ndarray, ctx: hetero.ScopedContext) -> hamr.Buffer:
    shared = hamr.buffer(readings, stream=ctx.stream, sync="async")
    return shared.copy(MEMORY[ctx.backend], device=ctx.device)


# Here would be kernels, as CuPy's, on cupy.cuda.ExternalStream(ctx.stream.ptr).
@module("device")
def calibrated(uploaded: hamr.Buffer, ctx: hetero.ScopedContext) -> hamr.Buffer:
    return uploaded.astype("float32")


def spectrum_of(values: np.ndarray) -> np.ndarray:
    return np.histogram(values, BINS, (LOWEST, HIGHEST))[0]


# What runs in place of all three where there is no device.
@module()
def spectrum_on_host(readings: np.ndarray) -> np.ndarray:
    return spectrum_of(readings.astype("float32"))


class Spectrum(Producer):
    """External work: `acquire` has elements copied, `produce` is called when they are there."""

    kind, name, inputs = "external", "spectrum", ["calibrated"]
    fallback = staticmethod(spectrum_on_host)

    def begin(self, place: str) -> None:
        """Page-locked memory, which is there for the whole run, for each stream of events."""
        backend = place.partition(":")[0]
        self.arrived = hamr.Buffer(N, "float32", PAGE_LOCKED[backend], transfer="async")

    def acquire(self, event: hetero.Event, ctx: hetero.ScopedContext) -> None:
        """Enqueue the copy to the host."""
        self.arrived.set_stream(ctx.stream)
        self.arrived.set(event["calibrated"])

    def produce(self, event: hetero.Event, ctx: None) -> np.ndarray:
        """Make of the elements what the host reads; the memory is the next event's, too."""
        return spectrum_of(np.asarray(self.arrived.get_host_accessible()))


@module()
def peak(spectrum: np.ndarray) -> float:
    return LOWEST + (int(spectrum.argmax()) + 0.5) * (HIGHEST - LOWEST) / BINS


# The filter: whether there was a device, and by which way the spectrum has come.
@module()
def way(event: hetero.Event) -> str:
    return "a device's" if event.place else "the processor's"


MODULES = [readings, uploaded, calibrated, Spectrum(), peak, way]

if __name__ == "__main__":
    trace = sys.argv[1] if len(sys.argv) > 1 else None
    pipeline = hetero.Pipeline(MODULES, streams=8, chooser=chooser(), trace=trace)
    results = pipeline.run(range(100))
    for result in results[:5]:
        print(f"event {result.number}: the peak is at {result['peak']:.0f}")
    (failed,) = [result for result in results if result.error]
    print(f"failed: {failed.error}")
    print(f"the others: {sum(not result.error for result in results)}")
    print(f"spectra by {' and '.join(sorted({r['way'] for r in results}))} way")
    print(pipeline.report)
