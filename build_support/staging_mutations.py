"""Mutations of the waits of staged copies."""

from __future__ import annotations

from build_support.mutation import Mutation

TRANSFER, PACKAGE = "backends/internal/staging/transfer.go", "./backends/internal/staging"

STAGING_MUTATIONS = [
    Mutation(
        "a piece is taken for copied before the device has done it",
        TRANSFER,
        "if over {\n\t\t\tt.flying",
        "if over = true; over {\n\t\t\tt.flying",
        PACKAGE,
    ),
    Mutation(
        "a chunk is filled again while the device reads it",
        TRANSFER,
        "c.pending = true\n\tt.flying = append(t.flying, c)\n\tp.ended = true\n\tt.ended++",
        "t.free = append(t.free, c)\n\tp.ended = true\n\tt.ended++",
        PACKAGE,
    ),
    Mutation(
        "a copy does not wait for the chunks of the one before",
        TRANSFER,
        "\t\tif c.pending {",
        "\t\tif false {",
        PACKAGE,
    ),
    Mutation(
        "host memory is still read or written after an error",
        TRANSFER,
        "for number < claimed && !p.done.Load() {",
        "for number < claimed && false {",
        PACKAGE,
    ),
    Mutation(
        "a piece is copied before it is offered",
        TRANSFER,
        "if t.offered.Load() > number {",
        "if true {",
        PACKAGE,
    ),
    Mutation(
        "an arena is given back while a transfer uses a part of it",
        "backends/internal/staging/chunks.go",
        "case a.idle < len(a.chunks):",
        "case false:",
        PACKAGE,
    ),
    Mutation(
        "a stream that stands still keeps other streams' transfers waiting",
        TRANSFER,
        "t.earlier = append(t.earlier[1:], c)",
        "t.earlier[0] = c",
        PACKAGE,
    ),
    Mutation(
        "a copy ends before its last pieces are there",
        TRANSFER,
        "err == nil && t.ended < pieces",
        "err == nil && t.begun < pieces",
        PACKAGE,
    ),
]
