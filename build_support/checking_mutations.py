"""What has the detector of memory that is used wrongly see order where there is some, mutated."""

from __future__ import annotations

from build_support.mutation import Mutation

SEQUENCE, WITNESS = "gobuffer/sequence.go", "gobuffer/witness.go"
CUDA = "./backends/cuda"
OBSERVER, TOUCHES = "backends/cuda/observer.go", "backends/cuda/observed_touches.go"
FACTS, UNSEEN = "backends/cuda/observed_facts.go", "backends/cuda/observed_unseen.go"

CHECKING_MUTATIONS = [
    Mutation(
        "what a stream waited for is not over with it",
        SEQUENCE,
        "	o.end(o.until(q))\n",
        "	o.over.raise(q, o.queue(q).last)\n",
    ),
    Mutation(
        "an event does not stand for what its stream had waited for",
        SEQUENCE,
        "o.events[e] = o.until(q)",
        "o.events[e] = frontier{q: o.queue(q).last}",
    ),
    Mutation(
        "a queue comes back after it was forgotten",
        SEQUENCE,
        "	of, r := o.queues[q], frontier{}\n",
        "	of, r := o.queue(q), frontier{}\n",
    ),
    Mutation(
        "a queue that ended is kept for ever",
        SEQUENCE,
        "if len(o.until(q)) == 0 {",
        "if false {",
    ),
    Mutation(
        "the detector takes its own looking for a use",
        WITNESS,
        "if k.looked || ",
        "if ",
    ),
    Mutation(
        "where memory ends is taken for the next one",
        WITNESS,
        "return e.Address >= k.at && e.Address < k.end",
        "return false",
    ),
    Mutation(
        "a kernel that has the whole is taken to use each part",
        WITNESS,
        "kernel.Writes == backends.MayWrite && kernel.At == k.at && ",
        "kernel.Writes > backends.DoesWrite && kernel.At == k.at && ",
    ),
    Mutation(
        "rows are taken to have no gaps",
        WITNESS,
        "	if pitch == 0 {\n",
        "	if true {\n",
    ),
    Mutation(
        "no bytes are taken for one",
        WITNESS,
        "		if t.Size <= 0 {\n			continue\n",
        "		if t.Size <= 0 {\n			t.Size = 1\n",
    ),
    Mutation(
        "what used memory in an earlier life counts",
        WITNESS,
        "return use.touch.at < end && at < use.touch.end",
        "return use.touch.at < end && end < at",
    ),
    Mutation(
        "what was unmapped is known still",
        "gobuffer/release.go",
        "			c.frees(m)\n		}\n		return errors.Join(late, m.endShared())\n",
        "		}\n		return errors.Join(late, m.endShared())\n",
    ),
    Mutation(
        "what was under way when memory was lent is forgotten",
        WITNESS,
        "				k.uses = append(k.uses, use)\n",
        "				_ = use\n",
    ),
    Mutation(
        "work that was refused counts",
        WITNESS,
        "	w.recent = slices.DeleteFunc(w.recent, refused)\n",
        "",
    ),
    Mutation(
        "a stream's handle stays the one that was destroyed",
        OBSERVER,
        "	delete(o.queues, of)\n",
        "",
        CUDA,
    ),
    Mutation(
        "a destroyed stream's work is never over",
        OBSERVER,
        "		o.endedIn(q)\n",
        "",
        CUDA,
    ),
    Mutation(
        "the default stream does not wait for what a destroyed stream had",
        OBSERVER,
        "			in.ended = append(o.stillOpen(in.ended), q)\n",
        "",
        CUDA,
    ),
    Mutation(
        "streams do not wait for the default one",
        OBSERVER,
        "		o.to.After(q.number, in.itself.number)\n",
        "",
        CUDA,
    ),
    Mutation(
        "a copy to ordinary memory is never over",
        FACTS,
        "to == (memoryFacts{}) ||",
        "false ||",
        CUDA,
    ),
    Mutation(
        "work that goes into a graph is told of",
        OBSERVER,
        "	if q.origin != nil {\n		return false\n",
        "	if q.origin != nil {\n		return true\n",
        CUDA,
    ),
    Mutation(
        "a graph waits for nobody",
        OBSERVER,
        "		o.graphs = true // it waits for the event at each launch\n",
        "",
        CUDA,
    ),
    Mutation(
        "an event of another process's stands for nothing",
        OBSERVER,
        "		if o.unseen[event] {\n			o.afterAny(q)\n",
        "		if false {\n			o.afterAny(q)\n",
        CUDA,
    ),
    Mutation(
        "a host function tells nobody",
        UNSEEN,
        "func(q *queue) { o.to.Over(q.number) })\n}\n\n// graphHasMore",
        "func(*queue) {})\n}\n\n// graphHasMore",
        CUDA,
    ),
    Mutation(
        "kernels' sizes outlive them",
        OBSERVER,
        "	clear(o.sizes)\n",
        "",
        CUDA,
    ),
    Mutation(
        "all of a large structure is scanned",
        TOUCHES,
        "if size > mostScanned {",
        "if false {",
        CUDA,
    ),
]
