"""Mutations of the waits of many copies at once."""

from __future__ import annotations

from build_support.mutation import Mutation

MANY, ORDER = "gobuffer/many.go", "gobuffer/many_order.go"
BATCH, RUNS, CUDA = "backends/cuda/copy_batch.go", "backends/cuda/runs.go", "./backends/cuda"

MANY_MUTATIONS = [
    Mutation(
        "copies that depend on each other are made in any order",
        ORDER,
        "if m.low < written || m.written && m.low < end {",
        "if false {",
    ),
    Mutation(
        "a copy of many overwrites what an earlier one has yet to read",
        ORDER,
        "if m.low < written || m.written && m.low < end {",
        "if m.low < written {",
    ),
    Mutation(
        "many copies do not wait for work on their sources",
        MANY,
        "err := w.followOnce(p.src, before[2*i], &followed)",
        "var err error",
    ),
    Mutation(
        "many copies do not wait for work on their destinations",
        MANY,
        "err = w.followOnce(p.dst, before[2*i+1], &followed)",
        "err = nil",
    ),
    Mutation(
        "many copies do not wait for what was recorded",
        MANY,
        "for _, before := range pending {\n\t\tif err := follow(before)",
        "for _, before := range pending[:0] {\n\t\tif err := follow(before)",
    ),
    Mutation(
        "many copies do not wait for their arrays' own streams",
        MANY,
        "return follow(own)",
        "_ = own\n\treturn nil",
    ),
    Mutation(
        "nobody waits for the readers of many copies' sources",
        MANY,
        "err = errors.Join(err, p.src.mark(w, before[2*i]))",
        "_ = before",
    ),
    Mutation(
        "nobody waits for the writers of many copies' destinations",
        MANY,
        "err = errors.Join(err, p.dst.mark(w, before[2*i+1]))",
        "_ = before",
    ),
    Mutation(
        "nobody waits for what many copies have begun before an error",
        MANY,
        "left = backends.Reading | backends.Writing // some",
        "return err // some",
    ),
    Mutation(
        "many copies to the host are not waited for",
        MANY,
        "return errors.Join(copyInOrder(list), finishPairs(list))",
        "return copyInOrder(list)",
    ),
    Mutation(
        "a copy of many reads host memory that an earlier one has yet to write",
        MANY,
        "errors.Join(copyInOrder(list[:half]), finishPairs(list[:half]))",
        "copyInOrder(list[:half])",
    ),
    Mutation(
        "many copies wait for one stream alone",
        MANY,
        "if over.contain(w) {",
        "if len(over) > 0 {",
    ),
    Mutation(
        "a batch beside the default stream does not wait for it",
        RUNS,
        "if err := v.follow(d, side, stream); err != nil {",
        "if err := error(nil); err != nil {",
        CUDA,
    ),
    Mutation(
        "the default stream does not wait for a batch beside it",
        RUNS,
        "if behind := v.follow(d, stream, side); behind != nil {",
        "if behind := error(nil); behind != nil {",
        CUDA,
    ),
    Mutation(
        "page-locked memory in disguise is gathered before it is written",
        BATCH,
        "if known.Allocator != backends.None {",
        "if known.Allocator != backends.None && false {",
        CUDA,
    ),
    Mutation(
        "nothing stands for the copies of a chunk",
        BATCH,
        "err = b.call(b.driver.EventRecord, c.Mark.Event, b.native(l.stream))",
        "_ = b",
        CUDA,
    ),
    Mutation(
        "a chunk is used again while copies of it fail",
        BATCH,
        "err = errors.Join(err, l.visit.finish(l.stream))",
        "_ = err",
        CUDA,
    ),
]
