"""What memory that grows where it is waits for, and what it leaves alone, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

CUDA = "./backends/cuda"
GROWING = "backends/cuda/growing.go"

GROWTH_MUTATIONS = [
    Mutation(
        "memory that grows is freed before the device is at rest",
        "gobuffer/release.go",
        "waits := m.grower != nil || m.unmap != nil",
        "waits := m.unmap != nil",
    ),
    Mutation(
        "memory at other addresses knows nothing of the work at the old ones",
        "gobuffer/extend.go",
        "_ = next.mark(w, nil)",
        "_ = w",
    ),
    Mutation(
        "memory moves while somebody else has it",
        "gobuffer/extend.go",
        "return references == 1 || (references == 2 && a.lent && a.sole)",
        "return references > 0",
    ),
    Mutation(
        "a view grows where its neighbours are",
        "gobuffer/array.go",
        "v.cached, v.grows, v.sole = layout, layout.Count(), false, false, false",
        "v.cached, v.sole = layout, layout.Count(), false, false",
    ),
    Mutation(
        "memory is unmapped under work of its own device",
        GROWING,
        "err := b.SynchronizeDevice(each.number)\n",
        "var err error\n",
        CUDA,
    ),
    Mutation(
        "memory is unmapped under work of a device that reaches it",
        "backends/cuda/peers.go",
        "\t\tif pair[1] == d.number {\n\t\t\tlist = append",
        "\t\tif false && pair[1] == d.number {\n\t\t\tlist = append",
        CUDA,
    ),
    Mutation(
        "a device that is connected does not reach memory that grew before",
        "backends/cuda/peers.go",
        "if err := b.extents.grantAll(b, second, first, readWrite)",
        "if err := b.extents.grantAll(b, second, first, noAccess)",
        CUDA,
    ),
    Mutation(
        "a pool that is not open to other devices from the start",
        "backends/cuda/pool.go",
        "err = b.openPool(d, pool)",
        "err = nil",
        CUDA,
    ),
]
