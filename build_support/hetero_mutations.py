"""What a scheduler hands out and waits for, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

CACHES, PRODUCT, CONTEXT = "hetero/cache.go", "hetero/product.go", "hetero/context.go"
WATCH, BLOCKS = "hetero/watch.go", "hetero/caching_allocator_blocks.go"
TRIM, PACKAGE = "hetero/caching_allocator_trim.go", "./hetero"

HETERO_MUTATIONS = [
    Mutation(
        "an event is handed out that is pending",
        CACHES,
        "if done && err == nil {\n\t\t\treturn e, nil",
        "if done || err == nil {\n\t\t\treturn e, nil",
        PACKAGE,
    ),
    Mutation(
        "a stream is handed out that has work",
        CACHES,
        "return idle, nil",
        "return idle || true, nil",
        PACKAGE,
    ),
    Mutation(
        "a stream waits for an event that is done",
        CACHES,
        "if done || err != nil {\n\t\treturn false, err\n\t}\n\treturn true",
        "if _ = done; err != nil {\n\t\treturn false, err\n\t}\n\treturn true",
        PACKAGE,
    ),
    Mutation(
        "events are trimmed that are pending",
        CACHES,
        "if done || err != nil {\n\t\t\tnote",
        "if done || true {\n\t\t\tnote",
        PACKAGE,
    ),
    Mutation(
        "an event is lost whose record failed",
        CACHES,
        "e, stream); err != nil {\n\t\tc.giveEvent(e)\n",
        "e, stream); err != nil {\n",
        PACKAGE,
    ),
    Mutation(
        "memory is not told that a stream ends",
        "hetero/hoards.go",
        "return (*f)(stream)",
        "return f != nil, nil",
        PACKAGE,
    ),
    Mutation(
        "a consumer does not wait for its product",
        PRODUCT,
        "return to.streams.Wait(to.place.Device, c.line.stream, m.event)",
        "return nil",
        PACKAGE,
    ),
    Mutation(
        "a consumer waits for a product that is done",
        PRODUCT,
        "if !pending || err != nil {\n\t\treturn err\n\t}\n\tif to",
        "if _ = pending; err != nil {\n\t\treturn err\n\t}\n\tif to",
        PACKAGE,
    ),
    Mutation(
        "a consumer waits for its own stream",
        PRODUCT,
        "} else if c.line.stream == m.line.stream {",
        "} else if false {",
        PACKAGE,
    ),
    Mutation(
        "two consumers take over a stream",
        PRODUCT,
        "if m.line.tenant.CompareAndSwap(m.tenant, m.tenant+1) {",
        "if m.line.tenant.Load() >= m.tenant {",
        PACKAGE,
    ),
    Mutation(
        "a stream is given back while a product has it",
        PRODUCT,
        "c.line.retain()\n\tp :=",
        "p :=",
        PACKAGE,
    ),
    Mutation(
        "a stream is given back while a context has it",
        "hetero/token.go",
        "t.line.retain()\n",
        "",
        PACKAGE,
    ),
    Mutation(
        "the error of a product is told to one consumer alone",
        PRODUCT,
        "m.failed.CompareAndSwap(nil, &err)\n",
        "",
        PACKAGE,
    ),
    Mutation(
        "an event is asked that nobody watches any more",
        WATCH,
        "if e.ended {\n\t\treturn false, nil",
        "if false {\n\t\treturn false, nil",
        PACKAGE,
    ),
    Mutation(
        "an event is told and unwatched",
        WATCH,
        "if !e.end() {",
        "if e.end(); false {",
        PACKAGE,
    ),
    Mutation(
        "a block is handed out that another stream uses",
        BLOCKS,
        "return m.user != u })\n}",
        "return false })\n}",
        PACKAGE,
    ),
    Mutation(
        "a block is handed out whose work is pending",
        BLOCKS,
        "if !done {\n\t\t\treturn false, nil",
        "if !done && false {\n\t\t\treturn false, nil",
        PACKAGE,
    ),
    Mutation(
        "a block does not wait for all its users",
        BLOCKS,
        "c.line.stream); u != b.user {",
        "c.line.stream); u == nil {",
        PACKAGE,
    ),
    Mutation(
        "a block that cannot be marked is not waited for",
        BLOCKS,
        "_ = b.memory.Leave(u.stream)",
        "_ = u",
        PACKAGE,
    ),
    Mutation(
        "blocks are given to the driver whose work is pending",
        TRIM,
        "case over:\n",
        "case over || true:\n",
        PACKAGE,
    ),
    Mutation(
        "blocks that are not kept are given to the driver whose work is pending",
        TRIM,
        "if over {\n\t\treturn errors",
        "if over || true {\n\t\treturn errors",
        PACKAGE,
    ),
    Mutation(
        "blocks keep a stream that ends",
        TRIM,
        "if m.Uses(stream) {",
        "if false {",
        PACKAGE,
    ),
]
