package gobuffer_test

import (
	"fmt"
	"strings"
	"testing"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// scenarios are short: each has arrays with streams of their own, on which there is work
// when something is done whose order with it matters. a is at a place of any kind, and b
// on another device.
var scenarios = []struct {
	name string
	run  func(w *modelWorld, a, b *held)
}{
	{"a copy from an array that is closed", func(w *modelWorld, a, b *held) {
		w.assignTo(b, a)
		w.close(&w.held[0])
	}},
	{"a copy to an array that is closed", func(w *modelWorld, a, b *held) {
		w.assignTo(a, b)
		w.close(&w.held[0])
	}},
	{"a kernel before all else", func(w *modelWorld, a, b *held) {
		w.useOwnStream(a, changes)
		w.assignTo(b, a)
		w.read(a)
	}},
	{"a kernel before the end", func(w *modelWorld, a, _ *held) {
		w.useOwnStream(a, changes)
		w.close(&w.held[0])
	}},
	{"a kernel by a handle that outlives the array", func(w *modelWorld, a, b *held) {
		w.assignTo(a, b)
		w.access(&w.handles[0], a, w.spaces()[0], 0, changes)
		w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
		w.close(&w.held[0])
		w.useAgain(w.handles[0])
		w.release(&w.handles[0])
	}},
	{"a kernel on another device", func(w *modelWorld, a, b *held) {
		w.assignTo(a, b)
		w.access(&w.handles[0], a, w.spaces()[0], 1, changes)
		w.release(&w.handles[0])
		w.read(a)
	}},
	{"a stream that is left and ends", func(w *modelWorld, a, b *held) {
		was := a.array.Stream()
		w.useOwnStream(a, changes)
		w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
		w.end(was)
		w.appendTo(b, a)
	}},
	{"a stream that is left for the default one", func(w *modelWorld, a, b *held) {
		w.useOwnStream(a, changes)
		w.setStreamOf(a, 0)
		w.assignTo(a, b)
	}},
	{"a consumer that tells", func(w *modelWorld, a, b *held) {
		w.assignTo(a, b)
		if f := a.cells.fakeIn(w); f != nil {
			w.consume(a, w.ownStream(f, a.cells.context()), changes, 0)
			w.fillAll(a)
		}
	}},
	{"a consumer that leaves", func(w *modelWorld, a, b *held) {
		w.useOwnStream(a, changes)
		if f := a.cells.fakeIn(w); f != nil {
			w.consume(a, w.ownStream(f, a.cells.context()), changes, 2)
		}
		w.assignTo(b, a)
		w.close(&w.held[0])
	}},
	{"growth", func(w *modelWorld, a, b *held) {
		w.useOwnStream(a, changes)
		w.appendTo(a, b)
		w.appendTo(a, a)
	}},
	{"a journey", func(w *modelWorld, a, _ *held) {
		w.useOwnStream(a, changes)
		for _, p := range []place{{backends.CUDAAsync, 1}, {backends.HIP, 0}, {backends.CUDAHost, -1}, {backends.CUDA, 0},
			{backends.Malloc, -1}} {
			if b := w.named(p.allocator.Backend()); b == nil && p.allocator != backends.Malloc {
				p = place{allocatorsOf(w.devices[0])[0], max(p.device, 0)}
			}
			w.moveTo(a, p)
		}
	}},
	{"a view of the host's", func(w *modelWorld, a, b *held) {
		w.assignTo(a, b)
		w.viewOnHost(&w.views[0], a)
		w.assignTo(b, a)
		w.fillAll(a)
		w.appendTo(a, b)
		w.close(&w.held[0])
		w.writeView(w.views[0])
		w.releaseView(&w.views[0])
	}},
	{"elements lent to the host", func(w *modelWorld, a, b *held) {
		w.assignTo(a, b)
		w.lendTo(a, user{backends.SpaceHost, -1}, gobuffer.ReadWrite)
		w.assignTo(b, a)
	}},
	{"elements lent to another device", func(w *modelWorld, a, b *held) {
		w.useOwnStream(a, changes)
		w.lendTo(a, user{w.spaces()[0], 1}, gobuffer.Write)
		w.lendTo(a, user{w.spaces()[0], 0}, gobuffer.ReadWrite)
		w.close(&w.held[0])
	}},
	{"a temporary that is kept", func(w *modelWorld, a, b *held) {
		cached(a.array)
		for device := range 2 {
			w.useOwnStream(a, changes)
			for i := range 2 {
				w.access(&w.handles[i], a, w.spaces()[0], device, reads)
				w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
			}
			w.read(a)
			w.release(&w.handles[0])
			w.assignTo(a, b)
			w.access(&w.handles[0], a, w.spaces()[0], device, reads)
		}
		w.close(&w.held[0])
	}},
	{"a temporary that is kept, of a stream that is left and ends", func(w *modelWorld, a, b *held) {
		cached(a.array)
		was := a.array.Stream()
		w.access(&w.handles[0], a, w.spaces()[0], 0, reads)
		w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
		w.useAgain(w.handles[0])
		w.release(&w.handles[0])
		w.end(was)
		w.access(&w.handles[0], a, w.spaces()[0], 0, reads)
		w.close(&w.held[0])
	}},
	{"many copies at once", func(w *modelWorld, a, b *held) {
		w.useOwnStream(a, changes)
		for _, way := range [][2]*held{{b, a}, {a, b}} {
			var to, from []*held
			for i := range 3 {
				to, from = append(to, w.piece(way[0], i, 1)), append(from, w.piece(way[1], i, 1))
			}
			w.copyParts(to, from)
			w.useOwnStream(way[1], changes)
			for _, h := range append(to, from...) {
				w.close(&h)
			}
		}
		w.close(&w.held[0])
	}},
	{"strided writes", func(w *modelWorld, a, b *held) {
		w.useOwnStream(b, changes)
		w.writeTo(a, b)
		w.writeTo(b, a)
		w.close(&w.held[1])
	}},
}

// TestEachSingleFaultInScenarios has each call fail that hamr makes, one in each run.
func TestEachSingleFaultInScenarios(t *testing.T) {
	modes := map[string][]place{
		"manual":            {{backends.HIP, 0}},
		"frees do not wait": {{backends.CUDAAsync, 1}},
		"mapped":            {{backends.CUDA, 1}},
	}
	for _, tried := range tried() {
		modes[tried] = []place{{backends.HIP, 0}}
	}
	for name, others := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios {
				for _, at := range modelModes[name].places(1) {
					for _, other := range others {
						t.Run(fmt.Sprintf("%s, %s, %s", s.name, at, other), func(t *testing.T) {
							eachFault(t, modelModes[name], func(w *modelWorld) {
								a, b := w.arrayOn(0, at, 5), w.arrayOn(1, other, 7)
								if a != nil && b != nil {
									s.run(w, a, b)
								}
							})
						})
					}
				}
			}
		})
	}
}

func eachFault(t *testing.T, o modelOptions, run func(w *modelWorld)) {
	seen := map[string]bool{}
	c := character{arrays: 2, streams: mostStreams, places: o.places(2), hurried: true}
	made := map[string]int{}
	o.made = made
	if found := attempt(t, o, c, run); found != nil {
		t.Fatalf("%s\nWithout a fault:\n%s", strings.Join(found.messages, "\n"), strings.Join(found.log, "\n"))
	}
	o.made = nil
	for runtime, f := range o.runtimes() {
		for _, kind := range faultKinds {
			for nth := range made[f+kind] {
				nth++
				o.single = &singleFault{runtime: runtime, kind: kind, nth: nth}
				if found := attempt(t, o, c, run); found != nil && !seen[found.class] {
					seen[found.class] = true
					t.Errorf("%s\nWith call %d of %s of runtime %d:\n%s", strings.Join(found.messages, "\n"), nth, kind, runtime,
						strings.Join(found.log, "\n"))
				}
			}
		}
	}
}

// arrayOn makes array i at p, with n elements and a stream of its own, on which they
// are brought there; nil is a failure.
func (w *modelWorld) arrayOn(i int, p place, n int) *held {
	o := p.options(gobuffer.Async)
	if d := w.named(p.allocator.Backend()); d != nil {
		o.Stream = w.ownStream(d, max(p.device, 0))
	}
	list := w.fresh(n)
	name := w.name("a")
	w.logf("%s = new %s [%d] from %d on, on stream %#x", name, p, n, list[0].number, uintptr(o.Stream))
	from := w.array(place{backends.Malloc, -1}.options(gobuffer.Async),
		model{arrayiface.Int32, []int{n}, image(arrayiface.Int32, list)})
	defer from.Close()
	var array *gobuffer.Array
	if w.call(func() (err error) { array, err = from.Copy(o, arrayiface.Int32); return err }) != nil {
		return nil
	}
	return w.put(&w.held[i], name, array, list)
}
