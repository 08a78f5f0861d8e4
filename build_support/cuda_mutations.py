"""Mutations of the CUDA backend's streams, events and pools."""

from build_support.mutation import Mutation

STREAMS, EVENTS, POOL = (f"backends/cuda/{name}.go" for name in ("streams", "events", "pool"))

CUDA_MUTATIONS = [
    Mutation(
        "a thread's default stream is not followed",
        STREAMS,
        "err = b.call(b.driver.StreamWaitEvent, b.native(s), e, 0)",
        "err = nil",
        "./backends/cuda",
    ),
    Mutation(
        "waiting for a stream does not wait",
        STREAMS,
        "return b.call(b.driver.StreamSynchronize, b.native(s))",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "waiting for an event does not wait",
        EVENTS,
        "return b.call(b.driver.EventSynchronize, handle)",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "waiting for a device does not wait",
        STREAMS,
        "return v.b.call(v.b.driver.CtxSynchronize)",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "a stream does not wait for an event",
        EVENTS,
        "return b.call(b.driver.StreamWaitEvent, b.native(s), handle, 0)",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "pools are trimmed while their memory is still being given back",
        POOL,
        "if err := b.call(b.driver.CtxSynchronize); err != nil {",
        "if err := error(nil); err != nil {",
        "./backends/cuda",
    ),
]
