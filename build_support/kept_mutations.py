"""Mutations of what Cached arrays keep: of each change that drops it, and of its order."""

from __future__ import annotations

from build_support.mutation import Mutation

KEPT, ARRAY, FILL = "gobuffer/kept.go", "gobuffer/array.go", "gobuffer/fill.go"
ACCESS, RELEASE, READ = "gobuffer/access.go", "gobuffer/release.go", "gobuffer/read.go"
THROUGH_HOST, WRITING = "gobuffer/through_host.go", "gobuffer/writing.go"

KEPT_MUTATIONS = [
    Mutation(
        "a temporary is kept whose elements a movement has changed",
        THROUGH_HOST,
        "\tdefer r.kept.changed(dst)\n",
        "",
    ),
    Mutation(
        "a temporary is kept whose elements were filled",
        FILL,
        "\tdefer r.kept.changed(dst)\n",
        "",
    ),
    Mutation(
        "a temporary is kept of elements of another number",
        ARRAY,
        "a.runtime.kept.changed(a.all())\n\ta.layout = layout",
        "a.layout = layout",
    ),
    Mutation(
        "a temporary is kept of elements that were replaced",
        ARRAY,
        "\ta.runtime.kept.changed(old.all())\n",
        "",
    ),
    Mutation(
        "a temporary is kept of elements that were given up",
        ARRAY,
        "a.runtime.kept.changed(a.all())\n\t}\n\ta.layout, a.room",
        "_ = a\n\t}\n\ta.layout, a.room",
    ),
    Mutation(
        "a temporary is kept of elements that were swapped",
        ARRAY,
        "\t\ta.runtime.kept.changed(a.all())\n\t\tb.runtime.kept.changed(b.all())\n",
        "",
    ),
    Mutation(
        "a temporary is kept whose elements an access writes",
        WRITING,
        "a.runtime.kept.changed(a.all())",
        "_ = a",
    ),
    Mutation(
        "a temporary is kept whose elements are read into",
        READ,
        "\tdefer m.runtime.kept.changedBytes(target, size)\n",
        "",
    ),
    Mutation(
        "a temporary is kept while an access writes",
        KEPT,
        "if a.runtime.claims.writes(a.all()) {",
        "if false {",
    ),
    Mutation(
        "a temporary is kept that hamr has written",
        KEPT,
        " || (e.made.memory != nil && e.made.mayShare(p))",
        "",
    ),
    Mutation(
        "a temporary is kept whose elements changed while they were copied",
        KEPT,
        "at := slices.Index(k.list, begun)\n",
        "at := slices.Index(k.list, begun)\n"
        "\tif at < 0 {\n\t\tk.list, at = append(k.list, begun), len(k.list)\n\t}\n",
    ),
    Mutation(
        "a temporary that is kept is handed out before it is filled",
        ACCESS,
        "if err := copied.order(h, copied.options.Device); err != nil {",
        "if err := error(nil); err != nil {",
    ),
    Mutation(
        "a temporary that is kept names a stream that was left",
        ARRAY,
        "err := a.runtime.kept.leave(a.options.Stream, "
        "func(e *keeping) bool { return e.isOfElements(a.all()) })",
        "err := error(nil)",
    ),
    Mutation(
        "a temporary that is kept names a stream that its array left while a handle had it",
        KEPT,
        "\t\tm.turns.Add(1) // who has it has perhaps yet to use the stream\n",
        "",
    ),
    Mutation(
        "memory names a stream that its array left while a handle had it",
        ARRAY,
        "\t\t\ta.memory.turns.Add(1)\n",
        "\t\t\t_ = a\n",
    ),
    Mutation(
        "a temporary that is kept names a stream that has ended",
        KEPT,
        "return r.kept.leave(s, func(*keeping) bool { return true })",
        "return nil",
    ),
    Mutation(
        "a temporary is kept of memory that is no more",
        RELEASE,
        "m.runtime.kept.ends(m)",
        "_ = m",
    ),
]
