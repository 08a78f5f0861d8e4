package gobuffer_test

import (
	"errors"

	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
)

// faultKinds are the calls that fail where calls do.
var faultKinds = []string{"Resolve", "NewEvent", "Record", "Wait", "DestroyEvent", "Synchronize", "SynchronizeDevice",
	"Idle",
	"Allocate", "Free", "Copy", "CopyBatch", "Fill", "Convert", "DeviceCount", "Map", "Unmap", "Grow", "Relocate"}

// singleFault is the one call of a device that fails in a walk.
type singleFault struct {
	runtime int
	kind    string
	nth     int // counted in what hamr does, not in what users do
	struck  bool
}

// fault returns which call of which devices fails in what hamr does next; no devices if
// none does.
func (w *modelWorld) fault() (of []backendtest.Device, kind string, nth int) {
	one := w.options.single
	switch {
	case one != nil && !one.struck:
		return w.devices[one.runtime:][:1], one.kind, one.nth
	case one == nil && w.options.faults && w.random.IntN(5) == 0:
		return w.devices, faultKinds[w.random.IntN(len(faultKinds))], 1 + w.random.IntN(3)
	}
	return nil, "", 0
}

// tally adds the calls so far, or takes them off.
func (w *modelWorld) tally(sign int) {
	if w.options.made == nil {
		return
	}
	for _, f := range w.devices {
		for _, kind := range faultKinds {
			w.options.made[f.Name()+kind] += sign * f.CallCount(kind)
		}
	}
}

// call asks something of hamr; in some modes one of the device's calls fails then. What
// is returned is an error that there has to be.
func (w *modelWorld) call(op func() error) error {
	of, kind, nth := w.fault()
	injected := error(errInjected)
	if kind == "Allocate" && w.random.IntN(2) == 0 {
		injected = &backends.OutOfMemoryError{Allocator: backends.CUDA, Size: 1, Detail: "injected"}
	}
	refused := kind == "Free" && w.random.IntN(2) == 0
	if refused {
		injected = &backends.NotFreedError{Reason: errInjected}
	}
	var counts []int
	for _, f := range of {
		counts = append(counts, f.CallCount(kind))
		f.FailAt(kind, nth, injected)
		if refused {
			f.FailAt(kind, nth+1, injected) // it is tried once more
		}
	}
	w.tally(-1)
	err := op()
	w.tally(1)
	struck := 0
	for i, f := range of {
		f.StopFailing()
		made := f.CallCount(kind) - counts[i]
		if made >= nth {
			struck++
		}
		if one := w.options.single; one != nil {
			one.nth -= made
			one.struck = made >= nth
		}
	}
	switch {
	case kind == "DestroyEvent":
		w.lost += struck
	case kind == "Free" && !refused:
		w.leaked += struck
	}
	if struck > 0 {
		w.logf("    %s %d fails: %v", kind, nth, err)
	}
	var full *backends.OutOfMemoryError
	switch {
	case err == nil:
		return nil
	case struck > 0 && (errors.Is(err, injected) ||
		(refused && errors.Is(err, errInjected))), w.options.Memory != 0 && errors.As(err, &full):
		w.logf("    fails")
		return err
	}
	w.t.Errorf("wrong error: %v", err)
	w.t.FailNow()
	return err
}

// order is what users have to do before elements of h are read or written through it:
// see to work that hamr cannot know of. nil are all elements of the memory.
func (w *modelWorld) order(h *held, touched []int, writes bool) {
	c := h.cells
	for _, k := range c.pending() {
		if !w.knows(h, k) && (k.writes || writes) && (touched == nil || common(touched, k.touched)) {
			w.tell(h, k)
		}
	}
	switch {
	case c == nil:
	case writes:
		c.written++
	default:
		c.read++
	}
}

func common(a, b []int) bool {
	for _, i := range a {
		for _, j := range b {
			if i == j {
				return true
			}
		}
	}
	return false
}

// tell makes what is done through h run after k in one of the ways that there are.
func (w *modelWorld) tell(h *held, k *foreignWork) {
	id, ok := w.id(h)
	switch w.random.IntN(3) {
	case 0:
		f := h.cells.fakeIn(w)
		if f != k.stream.fake || h.cells.context() != k.stream.device || k.ended {
			break
		}
		w.logf("    %s: After(%s), which holds %s", h.name, w.streamName(k.stream), k.name)
		if w.call(func() error { return h.cells.memory.After(h.stream(), k.stream.stream) }) != nil {
			break
		}
		w.told(h.cells, k.stream)
		return
	case 1:
		if !ok || k.ended || id.fake != k.stream.fake {
			break
		}
		w.logf("    %s's stream waits for %s by an event", h.name, k.name)
		f := id.fake
		e, err := f.NewEvent(k.stream.device)
		require.NoError(w.t, err)
		require.NoError(w.t, f.Record(k.stream.device, e, k.stream.stream))
		require.NoError(w.t, f.Wait(id.device, id.stream, e))
		require.NoError(w.t, f.DestroyEvent(k.stream.device, e))
		for _, other := range w.holders() {
			if its, ok := w.id(other); ok && its == id && other.cells == h.cells {
				k.known[other] = true
			}
		}
		return
	}
	w.wait(k)
}

// told is after After.
func (w *modelWorld) told(c *cells, s streamID) {
	for _, k := range c.pending() {
		k.all = k.all || k.stream == s
	}
}

// wait is what a user does who launched a kernel.
func (w *modelWorld) wait(k *foreignWork) {
	w.logf("    the user waits for %s", k.name)
	if k.ended {
		require.NoError(w.t, k.stream.fake.SynchronizeDevice(k.stream.device))
		return
	}
	require.NoError(w.t, k.stream.fake.Synchronize(k.stream.device, k.stream.stream))
}

// leave is what users have to do before h may give up its memory.
func (w *modelWorld) leave(h *held) {
	c := h.cells
	if c == nil {
		return
	}
	w.notice(h)
	for _, k := range c.pending() {
		if c.users == 1 && !k.done.Load() && (c.adopted || !(k.safe || k.known[h])) {
			w.wait(k)
		}
	}
}

// notice keeps what h knows by its stream.
func (w *modelWorld) notice(h *held) {
	for _, k := range h.cells.pending() {
		if w.knows(h, k) {
			k.known[h] = true
		}
	}
}

// failed is after an operation on h that was to write to the given elements. Nothing
// has changed, save that elements to be written are in doubt where a device failed.
func (w *modelWorld) failed(h *held, err error, written []int) {
	var full *backends.OutOfMemoryError
	h.changes(h.all())
	if h.cells == nil || errors.As(err, &full) {
		return
	}
	for _, i := range written {
		h.cells.values[i].known = false
	}
}

// all are the cells of h's memory, which some operations write to beyond h's elements.
func (h *held) all() (list []int) {
	if h.cells != nil {
		for i := range h.cells.values {
			list = append(list, i)
		}
	}
	return list
}
