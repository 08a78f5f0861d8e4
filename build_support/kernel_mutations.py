"""What launches of users' kernels wait for, and who waits for them, for mutations.py."""

from __future__ import annotations

from build_support.mutation import Mutation

LAUNCHING, KERNELS = "gobuffer/launching.go", "gobuffer/kernels.go"

KERNEL_MUTATIONS = [
    Mutation(
        "a kernel does not wait for what is pending on its arguments",
        LAUNCHING,
        "return by(before)",
        "return nil",
    ),
    Mutation(
        "a kernel waits for one of the works on its arguments",
        LAUNCHING,
        "if before.holdsAll(w) || followed.cover(before) {",
        "if before.holdsAll(w) || len(followed) > 0 {",
    ),
    Mutation(
        "memory does not know of the kernels that use it",
        LAUNCHING,
        "err = errors.Join(err, a.all().mark(w, f.before[next]))",
        "_ = w",
    ),
    Mutation(
        "a module is unloaded while its kernels run",
        KERNELS,
        "if m.idle() {",
        "if true {",
    ),
    Mutation(
        "a module does not know of its kernels",
        KERNELS,
        "_ = m.uses.replace(nil, w) // drops no ticket",
        "_ = w",
    ),
    Mutation(
        "a module names a stream that has ended",
        KERNELS,
        "failed = errors.Join(failed, m.forget(w))",
        "_ = w",
    ),
    Mutation(
        "a module names another library's stream",
        LAUNCHING,
        "if mayEnd && !captured && w.streams != nil {",
        "if false {",
    ),
    Mutation(
        "a module's kernels are not waited for when it is to go",
        KERNELS,
        "failed = errors.Join(failed, w.wait())",
        "_ = w",
    ),
]
