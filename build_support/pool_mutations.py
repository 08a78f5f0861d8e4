"""The waits of the pool of device memory, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

POOL = "backends/internal/pool"
POOL_STREAMS, POOL_TRIM = f"{POOL}/streams.go", f"{POOL}/trim.go"

ASIDE = "gobuffer/aside.go"

POOL_MUTATIONS = [
    Mutation(
        "page-locked memory is handed out again while a device uses it",
        ASIDE,
        "case len(pending) > 0:",
        "case false:",
    ),
    Mutation(
        "page-locked memory is not waited for when it is asked for",
        ASIDE,
        "err := m.settle()",
        "err := error(nil)",
    ),
    Mutation(
        "what page-locked memory's own stream holds is forgotten",
        ASIDE,
        "if m.asked.Load() != 0 {",
        "if false {",
    ),
    Mutation(
        "page-locked memory is kept for a stream that may end",
        ASIDE,
        "if w.ticket == nil && err == nil {",
        "if false {",
    ),
    Mutation(
        "page-locked memory does not wait for streams that nobody names",
        "gobuffer/leaving.go",
        "if m.freedInStreamOrder() || m.settled {",
        "if m.freedInStreamOrder() {",
    ),
    Mutation(
        "page-locked memory is set aside though anybody may use it",
        ASIDE,
        "!m.settled || m.every.Load() ||",
        "!m.settled ||",
    ),
    Mutation(
        "page-locked chunks are given back while a device copies them",
        "backends/cuda/staging.go",
        "err := b.SynchronizeEvent(m.Device, backends.Event(m.Event))",
        "err := error(nil)",
        "./backends/cuda",
    ),
    Mutation(
        "a device that only another library uses is not waited for",
        "backends/cuda/streams.go",
        "if err != nil || int32(v.out[1]) == 0 {",
        "if true {",
        "./backends/cuda",
    ),
    Mutation(
        "a backend's pool gets memory back before the work on it is ordered",
        "gobuffer/release.go",
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
        "backends/cuda/kept_streams.go",
        "p.EndStream(s)",
        "_ = p",
        "./backends/cuda",
    ),
    Mutation(
        "a pool ends an event where nobody may be waited for",
        f"{POOL}/at_once.go",
        "|| (b.owner.event != 0 && b.owner.blocks() == 1)",
        "",
        f"./{POOL}",
    ),
    Mutation(
        "a pool keeps more than it may where nobody may be waited for",
        f"{POOL}/at_once.go",
        "p.surplus()+b.size <= 0 && ",
        "",
        f"./{POOL}",
    ),
    Mutation(
        "memory is given back at once that other streams still use",
        "gobuffer/at_once.go",
        " || !m.uses.on(m.backend, m.context(), m.ordered())",
        "",
    ),
    Mutation(
        "memory is given back at once that streams still use which have ended",
        "gobuffer/at_once.go",
        "m.every.Load() || ",
        "",
    ),
    Mutation(
        "new memory does not say that it is there on one stream only",
        "gobuffer/at_once.go",
        "\tm.uses.begin(w)\n",
        "",
    ),
    Mutation(
        "memory whose address a library has is handed out again under its work",
        "gobuffer/release.go",
        "if m.every.Load() && (m.taker != nil || m.ends()) && !waits {",
        "if false {",
    ),
    Mutation(
        "who runs out of memory does not wait for another's callbacks",
        "gobuffer/pools.go",
        "\tc.turn.Lock()\n\tdefer c.turn.Unlock()\n",
        "\tif !c.turn.TryLock() {\n\t\treturn false, false\n\t}\n\tdefer c.turn.Unlock()\n",
    ),
    Mutation(
        "a look at freed memory goes on while more is freed",
        "gobuffer/checking.go",
        "all && c.kept[0].number > last || ",
        "",
    ),
]
