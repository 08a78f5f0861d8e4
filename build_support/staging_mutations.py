"""Mutations of the waits of staged copies."""

from __future__ import annotations

from build_support.mutation import Mutation

TRANSFER, PACKAGE = "backends/internal/staging/transfer.go", "./backends/internal/staging"

STAGING_MUTATIONS = [
    Mutation(
        "a piece is taken for copied before the device has done it",
        TRANSFER,
        "over, err := t.driver.Done(t.flying[0].chunk)",
        "over, err := true, error(nil)",
        PACKAGE,
    ),
    Mutation(
        "a chunk is filled again while the device reads it",
        TRANSFER,
        "f.chunk.pending = true\n\tt.flying = append(t.flying, f)\n\tt.ended++",
        "t.free = append(t.free, f.chunk)\n\tt.ended++",
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
        "a copy ends before its last pieces are there",
        TRANSFER,
        "err == nil && t.ended < t.pieces",
        "err == nil && t.begun < t.pieces",
        PACKAGE,
    ),
]
