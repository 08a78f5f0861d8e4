package gobuffer_test

import (
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// foreign says what a kernel does to the elements that it touches.
type foreign int

const (
	reads foreign = iota
	overwrites
	changes // reads and writes
)

func (what foreign) String() string { return [...]string{"reads", "overwrites", "changes"}[what] }

// launch enqueues a kernel on the elements of h, as another library would that has
// the stream from somewhere. device is the library's own.
func (w *modelWorld) launch(h *held, device int, s backends.Stream, what foreign) *foreignWork {
	c, f := h.cells, h.cells.fakeIn(w)
	w.unmap(c)
	k := &foreignWork{name: w.name("k"), device: f, touched: h.indices(), writes: what != reads, known: map[*held]bool{}}
	if of, ok := w.streamDevice[s]; ok {
		device = of
	}
	k.stream = streamID{f, device, s}
	if w.defaults[s] {
		k.stream.stream = 0
	}
	want, kind, base := h.values(), c.kind, c.memory.Region().Address
	var list []value
	if k.writes {
		list = w.fresh(len(want))
	}
	w.logf("    %s on %s %s %s%v", k.name, w.streamName(k.stream), what, c.name, k.touched)
	if w.random.IntN(2) == 0 {
		w.keepBusy(k.stream)
	}
	err := f.Launch(device, s, func(memory func(backends.Address, int) []byte) {
		var got []int64
		for i, at := range k.touched {
			bytes := memory(base+backends.Address(at*kind.Size()), kind.Size())
			got = append(got, number(kind, bytes))
			if k.writes {
				copy(bytes, element(kind, int(list[i].number)))
			}
		}
		if what != overwrites {
			w.compare("the kernel "+k.name, want, got)
		}
		k.done.Store(true)
	})
	if err != nil {
		w.t.Errorf("error: the kernel's launch: %v", err)
		w.t.FailNow()
	}
	if k.writes {
		h.store(list)
		w.foreignWrite(h)
	}
	c.work = append(c.work, k)
	return k
}

// keepBusy gives a stream so much to do that some questions do not end it.
func (w *modelWorld) keepBusy(s streamID) {
	for range 1 + w.random.IntN(6) {
		require.NoError(w.t, s.fake.Launch(s.device, s.stream, func(func(backends.Address, int) []byte) {}))
	}
}

// spaces are those that the world's runtimes make temporaries for.
func (w *modelWorld) spaces() (list []backends.Space) {
	for _, d := range w.devices {
		if s, err := backends.ParseSpace(d.Name()); err == nil {
			list = append(list, s)
		}
	}
	return list
}

func (w *modelWorld) what(fixed bool) foreign {
	if fixed {
		return reads
	}
	return foreign(w.random.IntN(3))
}

func (w *modelWorld) kernelByHandle() {
	a, at := w.some(), &w.handles[w.random.IntN(len(w.handles))]
	if a == nil {
		return
	}
	spaces := w.spaces()
	space := spaces[w.random.IntN(len(spaces))]
	device := w.random.IntN(2)
	if owner := a.array.Owner(); owner >= 0 && w.random.IntN(3) > 0 {
		device = owner
	}
	w.access(at, a, space, device, w.what(a.array.ReadOnly()))
	if w.random.IntN(2) == 0 {
		w.release(at)
	}
}

// access asks where code on a device can use an array, and has it use that.
func (w *modelWorld) access(at **held, a *held, space backends.Space, device int, what foreign) {
	w.release(at)
	h := &held{name: w.name("h"), device: device}
	w.logf("%s = %s.Access(%s, %d)", h.name, a.name, space, device)
	w.unmap(a.cells)
	inPlace := a.cells != nil && a.array.Accessible(space) && (device == a.array.Owner() ||
		a.array.Allocator().Kind() == backends.Managed)
	w.order(a, a.indices(), inPlace && what != reads)
	if w.call(func() (err error) { h.handle, err = a.array.Access(space, device); return err }) != nil {
		return
	}
	switch {
	case h.handle.Memory() == nil:
		require.Zero(w.t, a.array.Size())
		require.NoError(w.t, h.handle.Release())
		return
	case h.handle.Temporary():
		h.hold(w.temporaryOf(a, user{space, device}, h.handle))
	default:
		h.hold(a.cells)
	}
	*at = h
	if h.handle.Kept() {
		what = reads
	}
	if a.array.Size() > 0 {
		w.launch(h, device, h.handle.Stream(), what)
	}
	h.read, h.written = h.cells.read, h.cells.written
}

// kernelOnOwnStream is a user's who knows that nothing is pending and asks nobody.
func (w *modelWorld) kernelOnOwnStream() {
	if a := w.some(); a != nil && a.array.Size() > 0 {
		w.useOwnStream(a, w.what(a.array.ReadOnly()))
	}
}

func (w *modelWorld) useOwnStream(a *held, what foreign) {
	id, ok := w.id(a)
	if !ok {
		return
	}
	w.logf("%s.Synchronize()", a.name)
	w.order(a, a.indices(), what != reads)
	if w.call(a.array.Synchronize) == nil {
		w.launch(a, id.device, a.array.Stream(), what)
	}
}

// kernelAgain uses a handle once more, if nobody else has used the memory since.
func (w *modelWorld) kernelAgain() {
	if h := w.handles[w.random.IntN(len(w.handles))]; h != nil {
		w.useAgain(h)
	}
}

func (w *modelWorld) useAgain(h *held) {
	if h == nil || len(h.indices()) == 0 || h.written != h.cells.written {
		return
	}
	late := h.read != h.cells.read // what read it since may not have finished
	what := w.what(h.handle.ReadOnly() || late)
	w.logf("%s is used again", h.name)
	w.order(h, h.indices(), what != reads)
	w.launch(h, h.device, h.handle.Stream(), what)
	h.written = h.cells.written
	if !late {
		h.read = h.cells.read
	}
}

func (w *modelWorld) release(at **held) {
	h := *at
	if h == nil {
		return
	}
	w.leave(h)
	*at = nil
	defer w.hurry(h)()
	if id, ok := w.id(h); ok && id.device == h.cells.context() && w.random.IntN(4) == 0 {
		// As for the Python package, which keeps the memory and sees to the order itself.
		w.logf("detach %s", h.name)
		m := h.handle.Detach()
		if w.call(func() error { return m.Leave(h.handle.Stream()) }) == nil {
			w.told(h.cells, id)
		}
		_ = w.call(m.Release)
		h.handle = nil
	} else {
		w.logf("release %s", h.name)
		_ = w.call(h.handle.Release)
	}
	h.drop()
}

func (w *modelWorld) releaseHandle() { w.release(&w.handles[w.random.IntN(len(w.handles))]) }

// consumer does what a library does that takes an array by DLPack: it names a stream,
// which then runs after what is pending, works there, and tells hamr or not.
func (w *modelWorld) consumer() {
	a := w.some()
	if a == nil || a.cells == nil || a.array.Size() == 0 || a.cells.fakeIn(w) == nil {
		return
	}
	w.consume(a, w.streamOf(a.cells.fakeIn(w), a.cells.context()), w.what(a.array.ReadOnly()), w.random.IntN(5))
}

func (w *modelWorld) consume(a *held, s backends.Stream, what foreign, told int) {
	c := a.cells
	f := c.fakeIn(w)
	w.unmap(c)
	w.logf("%s.Before(%s)", a.name, w.streamName(streamID{f, c.context(), s}))
	w.order(a, a.indices(), what != reads)
	if w.call(func() error { return a.array.Before(s) }) != nil {
		return
	}
	k := w.launch(a, c.context(), s, what)
	switch told {
	case 0, 1:
		w.logf("    %s.After(%s)", a.name, w.streamName(k.stream))
		if w.call(func() error { return c.memory.After(a.array.Stream(), s) }) == nil {
			w.told(c, k.stream)
		}
	case 2:
		if s == perThread { // at its end the library may be on any thread
			break
		}
		if w.random.IntN(2) == 0 {
			w.logf("    the memory's release waits for all streams")
			if w.call(func() error { return c.memory.Leave(backends.EveryStream) }) == nil {
				a := c.memory.Region().Allocator
				k.safe = c.memory.Owned() && (a.Ordered() || (w.options.Reuses && a.Kind() == backends.DeviceOnly))
			}
			break
		}
		w.logf("    %s is left", w.streamName(k.stream))
		pinned := c.memory.Region().Allocator.Kind() == backends.Pinned
		if w.call(func() error { return c.memory.Leave(s) }) == nil && !(pinned && s == 0) {
			w.told(c, k.stream)
		}
	}
}

// covering looks at memory after the stream that is said to cover all work.
func (w *modelWorld) covering() {
	a := w.some()
	if a == nil {
		return
	}
	w.logf("%s.Covering()", a.name)
	w.order(a, a.indices(), true)
	var s backends.Stream
	var busy bool
	if w.call(func() (err error) { s, busy, err = a.array.Covering(); return err }) != nil || a.array.Size() == 0 {
		return
	}
	if !busy {
		if f := a.cells.fakeIn(w); f != nil {
			w.truth("who was told that nothing is pending", a)
		}
		return
	}
	f, device := a.cells.fakeIn(w), a.cells.context()
	if of, ok := w.streamDevice[s]; ok {
		device = of
	}
	w.logf("    is %s", w.streamName(streamID{f, device, s}))
	if w.random.IntN(2) == 0 {
		require.NoError(w.t, f.Synchronize(device, s))
		w.truth("who waited for the covering stream", a)
		return
	}
	w.launch(a, device, s, w.what(a.array.ReadOnly()))
}
