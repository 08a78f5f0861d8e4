"""Show that the tests notice a missing wait: remove one after the other, and test.

python -m build_support.mutations [NAME...]

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
from pathlib import Path

from build_support.checking_mutations import CHECKING_MUTATIONS
from build_support.cuda_mutations import CUDA_MUTATIONS
from build_support.growth_mutations import GROWTH_MUTATIONS
from build_support.hetero_mutations import HETERO_MUTATIONS
from build_support.kept_mutations import KEPT_MUTATIONS
from build_support.kernel_mutations import KERNEL_MUTATIONS
from build_support.many_mutations import MANY_MUTATIONS
from build_support.mutation import Mutation
from build_support.pool_mutations import POOL_MUTATIONS
from build_support.restart_mutations import RESTART_MUTATIONS
from build_support.staging_mutations import STAGING_MUTATIONS
from build_support.stop_mutations import STOP_MUTATIONS
from build_support.store_mutations import STORE_MUTATIONS

ROOT = Path(__file__).resolve().parent.parent


WORK, TRANSFER, MEMORY = "gobuffer/work.go", "gobuffer/transfer.go", "gobuffer/memory.go"
ORDER, USES, ACCESS = "gobuffer/order.go", "gobuffer/uses.go", "gobuffer/access.go"
POSTPONED, READ, MAPPING = "gobuffer/postponed.go", "gobuffer/read.go", "gobuffer/mapping.go"
WRITING, CLAIMS = "gobuffer/writing.go", "gobuffer/claims.go"
LEAVING = "gobuffer/leaving.go"
WRITE_MEMORY, RELEASE = "gobuffer/write_memory.go", "gobuffer/release.go"

MUTATIONS = [
    *KEPT_MUTATIONS,
    *STAGING_MUTATIONS,
    *STOP_MUTATIONS,
    *MANY_MUTATIONS,
    *POOL_MUTATIONS,
    *GROWTH_MUTATIONS,
    *HETERO_MUTATIONS,
    *STORE_MUTATIONS,
    *RESTART_MUTATIONS,
    *KERNEL_MUTATIONS,
    *CHECKING_MUTATIONS,
    Mutation(
        "memory is mapped under work",
        MAPPING,
        "if err := p.settle(); err != nil {\n\t\treturn piece{}, err\n\t}\n\tswitch",
        "switch",
    ),
    Mutation(
        "memory is mapped while others enqueue work on it",
        MAPPING,
        "for x.host.Load() == nil && x.enqueuing > 0 {",
        "for false {",
    ),
    Mutation(
        "memory is unmapped while another device reads it",
        MAPPING,
        "late := m.settle()\n",
        "var late error\n",
    ),
    Mutation(
        "the host's view is not waited for",
        MAPPING,
        "return x.host.Load().settle()",
        "return nil",
    ),
    Mutation(
        "a device is given what the host has mapped",
        MAPPING,
        "return ErrMapped",
        "return nil",
    ),
    Mutation(
        "streams do not follow each other",
        WORK,
        "err := w.streams.Wait(w.device, w.stream, e.handle)",
        "err := error(nil)",
    ),
    Mutation(
        "an event is not waited for",
        WORK,
        "return e.streams.SynchronizeEvent(e.device, e.handle)",
        "return nil",
    ),
    Mutation(
        "a stream is not waited for",
        WORK,
        "return w.streams.Synchronize(w.device, w.stream)",
        "return nil",
    ),
    Mutation(
        "two runtimes' streams do not wait for each other",
        WORK,
        "return err\n\t}\n\treturn before.wait()",
        "return err\n\t}\n\treturn nil",
    ),
    Mutation(
        "a movement does not follow what is pending on its operands",
        ORDER,
        "for _, before := range pending {\n\t\tif err := w.follow(before); err != nil {",
        "for range pending {\n\t\tif err := w.follow(w); err != nil {",
    ),
    Mutation(
        "a movement does not follow its operands' own streams",
        ORDER,
        "if err == nil && !pending.cover(own) {\n\t\terr = w.follow(own)",
        "if err == nil && !pending.cover(own) {\n\t\terr = w.follow(w)",
    ),
    Mutation(
        "a second stream's work on memory replaces the first one's",
        USES,
        "if old.has(w) || (next",
        "if next != nil || old.has(w) || (next",
    ),
    Mutation(
        "what takes the place of hamr's own work counts as another library's",
        USES,
        "own.foreign = false",
        "own.foreign = true",
    ),
    Mutation(
        "the host does not wait for what is pending",
        ORDER,
        "err := errors.Join(p.memory.settleThose(pending, (*work).wait), pending.letGo())",
        "err := pending.letGo()",
    ),
    Mutation(
        "the host does not wait for other libraries' work on a buffer's stream",
        ORDER,
        "return err\n\t}\n\treturn own.wait()",
        "return err\n\t}\n\treturn nil",
    ),
    Mutation(
        "a stream that is left is forgotten",
        LEAVING,
        "w.foreign = true\n\treturn p.memory.leave(w)",
        "w.foreign = true\n\treturn nil",
    ),
    Mutation(
        "a stream that ends is forgotten by memory that is read or written there",
        LEAVING,
        "failed, left = errors.Join(failed, m.leave(w)), true",
        "left = true",
    ),
    Mutation(
        "a view that is closed leaves nothing behind",
        ORDER,
        "_ = m.mark(w, nil) // in place",
        "_ = m // in place",
    ),
    Mutation(
        "the default stream is not asked for other libraries' work",
        ORDER,
        "if idle, err = own.idle(); errors.Is",
        "if idle = true; errors.Is",
    ),
    Mutation(
        "a producer's stream is not followed",
        ORDER,
        "err = own.follow(before)\n\t\t}",
        "_, err = before, own.follow(own)\n\t\t}",
    ),
    Mutation(
        "consumers are told of a stream that does not cover what is pending",
        ORDER,
        "if err := own.follow(before); err != nil {\n\t\t\treturn nil, err",
        "_ = before\n\t\tif err := own.follow(own); err != nil {\n\t\t\treturn nil, err",
    ),
    Mutation(
        "a consumer's stream does not follow what is pending",
        ORDER,
        "return w.follow(before)\n}\n\n// isOn",
        "return nil\n}\n\n// isOn",
    ),
    Mutation(
        "a stand-in waits in place of a consumer's per-thread stream",
        ORDER,
        "return w.follow(before)\n}\n\n// isOn",
        "w.stream, _ = w.streams.Resolve(w.device, s)\n\treturn w.follow(before)\n}\n\n// isOn",
    ),
    Mutation(
        "a handle's stream does not follow what is pending",
        ACCESS,
        "if err := target.follow(before); err != nil {",
        "_ = before\n\t\tif err := target.follow(target); err != nil {",
    ),
    Mutation(
        "managed memory is not followed to another device",
        ACCESS,
        "if err := target.follow(own); err != nil {",
        "if err := target.follow(target); err != nil {",
    ),
    Mutation(
        "a handle that is released leaves nothing behind",
        ACCESS,
        "!p.hasStream() || m.region.Address == 0 {",
        "!p.hasStream() || m != nil {",
    ),
    Mutation(
        "a write-back does not follow the stream that the temporary is used on",
        WRITING,
        "layout: h.layout, stream: h.stream, stop: stop}",
        "layout: h.layout, stop: stop}",
    ),
    Mutation(
        "a write-back does not follow the buffer's own stream",
        WRITING,
        "return l.runtime.copyElements(l.source, written, l.transfer)",
        "l.source.stream = 0\n\treturn l.runtime.copyElements(l.source, written, l.transfer)",
    ),
    Mutation(
        "elements that were lent leave nothing behind",
        WRITING,
        "late = h.remember()",
        "_ = h",
    ),
    Mutation(
        "elements are lent twice for writing",
        CLAIMS,
        "if other := c.find(p, holder, mode.Writes()); other != nil {",
        "if other := c.find(p, holder, mode.Writes()); false {",
    ),
    Mutation(
        "elements are changed while they are lent for writing",
        CLAIMS,
        "if other := c.find(p, holder, false); other != nil {",
        "if other := c.find(p, holder, false); false {",
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
        RELEASE,
        "err := own.follow(w)",
        "err := own.follow(own)",
    ),
    Mutation(
        "memory is released under what could not be ordered",
        RELEASE,
        "late = errors.Join(late, err)\n\t\t\terr = w.wait()",
        "late, err = errors.Join(late, err), nil",
    ),
    Mutation(
        "memory is released under pending work",
        RELEASE,
        "late := m.settleBeforeRelease()",
        "var late error",
    ),
    Mutation(
        "frees that do not wait are not preceded by a wait",
        RELEASE,
        "return err\n\t}\n\treturn w.wait()",
        "return err\n\t}\n\t_ = w\n\treturn nil",
    ),
    Mutation(
        "memory of a stream that has ended is released by its driver's order",
        RELEASE,
        "\tm.coverByDevice()\n",
        "",
    ),
    Mutation(
        "memory is freed on a stream that has ended",
        RELEASE,
        "m.leaveStream() // neither",
        "_ = 0 // neither",
    ),
    Mutation(
        "who names no stream that may have ended asks it",
        "gobuffer/ended_streams.go",
        "if other && w.mayHaveEnded() {",
        "if other && false {",
    ),
    Mutation(
        "the first of two calls asks a stream that the second has named",
        LEAVING,
        "if u.calls[s] += count; u.calls[s] == 0 {",
        "if u.calls[s] += count; count < 0 {",
    ),
    Mutation(
        "what another device met at a late release is not told",
        POSTPONED,
        "late = errors.Join(late, failed)",
        "_ = failed",
    ),
    Mutation(
        "another device's work is taken for covered by a free",
        RELEASE,
        "m.freeWaits && w.device == m.context() && w.backend == m.backend",
        "m.freeWaits",
    ),
    Mutation(
        "what a handle elsewhere names is waited for once",
        USES,
        "list = append(list, u.named[i].work)",
        "_ = i",
    ),
    Mutation(
        "what a failed fill has enqueued is nobody's",
        "gobuffer/fill.go",
        "return errors.Join(err, m.mark(w, before))",
        "return err",
    ),
    Mutation(
        "a reader's memory is written to after an error",
        READ,
        "err != nil && w.wait() != nil",
        "err != nil && false",
    ),
    Mutation(
        "a few bytes are written before what is pending",
        WRITE_MEMORY,
        "if err := w.follow(other); err != nil {",
        "if other == nil {",
    ),
    Mutation(
        "a few bytes that are written are not marked",
        WRITE_MEMORY,
        "\terr = m.mark(w, before)\n",
        "",
    ),
    Mutation(
        "the source of a few bytes is given back while it is read",
        WRITE_MEMORY,
        "t != Sync && !reading",
        "t != Sync",
    ),
    Mutation(
        "the source of a few bytes is given back after an error",
        WRITE_MEMORY,
        "if reading && w.wait() != nil {",
        "if false {",
    ),
    Mutation(
        "a temporary is kept of elements of which a few bytes are written",
        WRITE_MEMORY,
        "m.runtime.kept.changedPart(p, size)",
        "_ = size",
    ),
    Mutation(
        "the target of a movement is not marked",
        TRANSFER,
        "src.memory {\n\t\terr = errors.Join(err, dst.mark(w, overwritten))",
        "src.memory {\n\t\terr = errors.Join(err, nil)",
    ),
    Mutation(
        "the source of a movement is not marked",
        TRANSFER,
        "err = src.mark(w, before)",
        "err = nil",
    ),
    Mutation(
        "synchronous transfers are not waited for",
        TRANSFER,
        "err = w.wait()\n\t}\n\tif err != nil {",
        "err = nil\n\t}\n\tif err != nil {",
    ),
    Mutation(
        "memory of a pool is used before its stream came to it",
        MEMORY,
        "m.uses.begin(w)",
        "_ = w",
    ),
    *CUDA_MUTATIONS,
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
