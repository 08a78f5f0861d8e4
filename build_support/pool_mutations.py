"""The waits of the pool of device memory, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

POOL = "backends/internal/pool"
POOL_STREAMS, POOL_TRIM = f"{POOL}/streams.go", f"{POOL}/trim.go"

POOL_MUTATIONS = [
    Mutation(
        "a backend's pool gets memory back before the work on it is ordered",
        "gobuffer/memory.go",
        "return m.owned && m.inOrder",
        "return m.owned && m.region.Allocator.Ordered()",
    ),
    Mutation(
        "a pool does not look whether an event was reached",
        POOL_STREAMS,
        "return err == nil && done",
        "return err == nil || done",
        f"./{POOL}",
    ),
    Mutation(
        "a pool does not look whether a stream is idle",
        POOL_STREAMS,
        "case idle:",
        "case idle || true:",
        f"./{POOL}",
    ),
    Mutation(
        "an event speaks for what comes back later",
        POOL_STREAMS,
        "return b.moment <= moment })",
        "return b.moment <= moment || true })",
        f"./{POOL}",
    ),
    Mutation(
        "a pool takes another stream of the same handle for the same",
        f"{POOL}/pool.go",
        "if !p.over(own.event) && p.source.Wait(s, own.event) != nil {",
        "if false {",
        f"./{POOL}",
    ),
    Mutation(
        "a pool forgets what a stream held at its end",
        POOL_STREAMS,
        "\tp.leave(owner)\n",
        "\tp.settleUpTo(owner, owner.now)\n",
        f"./{POOL}",
    ),
    Mutation(
        "a pool is trimmed without waiting for the device",
        POOL_TRIM,
        "if err := p.source.Synchronize(); err != nil {",
        "if err := error(nil); err != nil {",
        f"./{POOL}",
    ),
    Mutation(
        "a pool gives memory to the driver that another context still uses",
        POOL_TRIM,
        "if b.owner != anybody && !b.owner.lasting {",
        "if false {",
        f"./{POOL}",
    ),
    Mutation(
        "memory that the driver did not take back is reused at once",
        POOL_TRIM,
        "b.owner, b.moment = &p.lost, p.lost.next()",
        "b.owner = &p.anybody",
        f"./{POOL}",
    ),
    Mutation(
        "plain memory is reused whatever the thread's stream holds",
        "backends/cuda/reuse.go",
        "if s, err = b.Resolve(at.Device, s); err != nil {",
        "if s = legacyStream; err != nil {",
        "./backends/cuda",
    ),
    Mutation(
        "the pool of plain memory is not told that a stream ends",
        "backends/cuda/streams.go",
        "p.EndStream(s)",
        "_ = p",
        "./backends/cuda",
    ),
]
