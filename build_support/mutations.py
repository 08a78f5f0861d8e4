"""Show that the tests notice a missing wait: remove one after the other, and test.

python build_support/mutations.py [NAME...]

Each mutation takes one synchronisation out of the Go core or the CUDA backend, by
an overlay, so that no file changes. It must be caught: one that no test notices
makes the exit status 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Mutation:
    """What to replace in a file, and which package's tests notice."""

    name: str
    file: str
    old: str
    new: str
    package: str = "./gobuffer"


WORK, TRANSFER, MEMORY = "gobuffer/work.go", "gobuffer/transfer.go", "gobuffer/memory.go"
POSTPONED = "gobuffer/postponed.go"

MUTATIONS = [
    Mutation(
        "streams do not follow each other",
        WORK,
        "err = s.Wait(w.device, w.stream, e)",
        "err = nil",
    ),
    Mutation(
        "a movement does not follow what is pending on its operands",
        WORK,
        "if err := w.follow(pending); err != nil {",
        "if err := w.follow(w); err != nil {",
    ),
    Mutation(
        "a movement does not follow its operands' own streams",
        WORK,
        "return pending, w.follow(own)",
        "return pending, nil",
    ),
    Mutation(
        "a second stream's work on memory replaces the first one's",
        WORK,
        "return nil\n\t}\n\treturn old.wait()",
        "return nil\n\t}\n\treturn nil",
    ),
    Mutation(
        "the host does not wait for what is pending",
        WORK,
        "if err := w.wait(); err != nil {\n\t\treturn err\n\t}\n\tm.done(w)",
        "m.done(w)",
    ),
    Mutation(
        "the host does not wait for other libraries' work on a buffer's stream",
        WORK,
        "return err\n\t}\n\treturn own.wait()",
        "return err\n\t}\n\treturn nil",
    ),
    Mutation(
        "a producer's stream is not followed",
        WORK,
        "if err := own.follow(m.workOn(before)); err != nil {",
        "if err := own.follow(own); err != nil {",
    ),
    Mutation(
        "consumers are told of a stream that does not cover what is pending",
        WORK,
        "if err := own.follow(pending); err != nil {",
        "if err := own.follow(own); err != nil {",
    ),
    Mutation(
        "a consumer's stream does not follow what is pending",
        WORK,
        "return a.memory.workOn(s).follow(before)",
        "return nil",
    ),
    Mutation(
        "a stand-in waits in place of a consumer's per-thread stream",
        WORK,
        "return a.memory.workOn(s).follow(before)",
        "w := a.memory.workOn(s)\n\t"
        "w.stream, _ = a.memory.streams.Resolve(w.device, s)\n\t"
        "return w.follow(before)",
    ),
    Mutation(
        "memory that others used on any stream is released without waiting for the device",
        POSTPONED,
        "if late = s.SynchronizeDevice(device); late == nil {",
        "if late == nil {",
    ),
    Mutation(
        "memory is released although its device could not be waited for",
        POSTPONED,
        "return s.SynchronizeDevice(device) == nil, late",
        "return s != nil, late",
    ),
    Mutation(
        "memory is released in stream order without following other streams",
        WORK,
        "if err := own.follow(w); err != nil {",
        "if err := own.follow(own); err != nil {",
    ),
    Mutation(
        "memory is released under pending work",
        MEMORY,
        "late := m.settleBeforeRelease()",
        "var late error",
    ),
    Mutation(
        "the target of a movement is not marked",
        TRANSFER,
        "if err := dst.memory.mark(w, overwritten); err != nil {",
        "if err := error(nil); err != nil {",
    ),
    Mutation(
        "the source of a movement is not marked",
        TRANSFER,
        "if err := src.memory.mark(w, before); err != nil {",
        "if err := error(nil); err != nil {",
    ),
    Mutation(
        "synchronous transfers are not waited for",
        TRANSFER,
        "if err := w.wait(); err != nil {\n\t\treturn err\n\t}\n\tsrc.memory.done(w)",
        "src.memory.done(w)",
    ),
    Mutation(
        "memory of a pool is used before its stream came to it",
        MEMORY,
        "m.pending.Store(m.workOn(m.ordered()))",
        "m.pending.Store(nil)",
    ),
    Mutation(
        "a thread's default stream is not followed",
        "backends/cuda/streams.go",
        "err = b.call(b.driver.StreamWaitEvent, uintptr(s), e, 0)",
        "err = nil",
        "./backends/cuda",
    ),
    Mutation(
        "waiting for a stream does not wait",
        "backends/cuda/streams.go",
        "return b.call(b.driver.StreamSynchronize, uintptr(s))",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "waiting for an event does not wait",
        "backends/cuda/events.go",
        "return b.call(b.driver.EventSynchronize, handle)",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "waiting for a device does not wait",
        "backends/cuda/streams.go",
        "return b.call(b.driver.CtxSynchronize)",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "a stream does not wait for an event",
        "backends/cuda/events.go",
        "return b.call(b.driver.StreamWaitEvent, uintptr(s), handle, 0)",
        "return nil",
        "./backends/cuda",
    ),
    Mutation(
        "pools are trimmed while their memory is still being given back",
        "backends/cuda/pool.go",
        "if err := b.call(b.driver.CtxSynchronize); err != nil {",
        "if err := error(nil); err != nil {",
        "./backends/cuda",
    ),
]


def mutated(mutation: Mutation) -> str:
    """Return the file's text with the mutation."""
    text = (ROOT / mutation.file).read_text()
    count = text.count(mutation.old)
    if count != 1:
        sys.exit(f"{mutation.name}: {mutation.file} has {count} times, not once:\n{mutation.old}")
    return text.replace(mutation.old, mutation.new)


def first_failure(mutation: Mutation, text: str) -> str | None:
    """Return the name of the test that notices, or None."""
    with tempfile.TemporaryDirectory() as scratch:
        changed, overlay = Path(scratch) / "changed.go", Path(scratch) / "overlay.json"
        changed.write_text(text)
        overlay.write_text(json.dumps({"Replace": {str(ROOT / mutation.file): str(changed)}}))
        command = ["go", "test", "-vet=off", "-failfast", "-timeout=5m", f"-overlay={overlay}"]
        command.append("-skip=Cost")  # they notice any change, which proves nothing
        done = subprocess.run(
            [*command, mutation.package], cwd=ROOT, text=True, capture_output=True, check=False
        )
    output = done.stdout + done.stderr
    if "[build failed]" in output or "[setup failed]" in output:
        sys.exit(f"{mutation.name}: does not compile\n{output}")
    if done.returncode == 0:
        return None
    failed = re.findall(r"^\s*--- FAIL: (\S+)", output, re.MULTILINE)
    crashed = re.findall(r"^panic: (.*)", output, re.MULTILINE)
    return (
        max(failed, key=len) if failed else f"a crash: {crashed[0] if crashed else output[-300:]}"
    )


def main() -> int:
    """Test each mutation, or those named."""
    chosen = [m for m in MUTATIONS if not sys.argv[1:] or m.name in sys.argv[1:]]
    texts = [mutated(m) for m in chosen]
    survived = 0
    for mutation, text in zip(chosen, texts, strict=True):
        test = first_failure(mutation, text)
        survived += test is None
        print(f"{mutation.name}: {f'caught by {test}' if test else 'SURVIVED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return int(survived > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main())
