package gobuffer_test

import (
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
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
	k := &foreignWork{name: w.name("k"), fake: f, touched: h.indices(), writes: what != reads, known: map[*held]bool{}}
	if of, ok := w.deviceOf[s]; ok {
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
	space := backends.SpaceCUDA + backends.Space(w.random.IntN(2))
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
	inPlace := a.cells != nil && a.array.Accessible(space) && (device == a.array.Owner() || a.array.Allocator().Kind() == backends.Managed)
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
		h.hold(w.newCells(h.handle.Memory(), a.kind()))
		h.store(a.values())
	default:
		h.hold(a.cells)
	}
	*at = h
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
				k.safe = c.memory.Owned() && c.memory.Region().Allocator.Ordered()
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
	if of, ok := w.deviceOf[s]; ok {
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

// streamOf is a stream of a device, of its own or not.
func (w *modelWorld) streamOf(f *backendtest.Fake, device int) backends.Stream {
	switch w.random.IntN(8) {
	case 0, 1:
		return 0
	case 2:
		return backends.Stream(w.random.IntN(2) + 1)
	}
	return w.ownStream(f, device)
}

func (w *modelWorld) ownStream(f *backendtest.Fake, device int) backends.Stream {
	of := 0
	if f == w.hip {
		of = 1
	}
	at := &w.own[of][device][w.random.IntN(w.streams)]
	if *at == nil {
		s, err := f.NewStream(device)
		require.NoError(w.t, err)
		*at = &ownStream{streamID{f, device, s}, w.name("s")}
		w.deviceOf[s] = device
	}
	return (*at).stream
}

func (w *modelWorld) streamName(id streamID) string {
	name := "the default stream"
	switch id.stream {
	case 0, legacy:
	case perThread:
		name = "the thread's stream"
	default:
		name = "a stream of hamr's"
		for _, s := range w.allStreams() {
			if s.streamID == id {
				name = s.name
			}
		}
	}
	return name + " of " + id.fake.Name() + string(rune('0'+id.device))
}

func (w *modelWorld) allStreams() (list []*ownStream) {
	for _, runtime := range w.own {
		for _, device := range runtime {
			for _, s := range device {
				if s != nil {
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// endStream ends a stream that no array and no handle names, as the Python package does.
func (w *modelWorld) endStream() {
	if list := w.allStreams(); len(list) > 0 {
		w.end(list[w.random.IntN(len(list))].stream)
	}
}

func (w *modelWorld) end(stream backends.Stream) {
	var s *ownStream
	for _, other := range w.allStreams() {
		if other.stream == stream {
			s = other
		}
	}
	if s == nil {
		return
	}
	var held []*cells
	for _, h := range w.holders() {
		if h.stream() == s.stream {
			return
		}
		if h.cells != nil {
			held = append(held, h.cells)
		}
	}
	w.logf("%s ends", w.streamName(s.streamID))
	for _, c := range held {
		for _, k := range c.pending() {
			if k.stream == s.streamID {
				// The handle may soon be another stream's.
				k.ended, k.stream.stream = true, backends.EveryStream
			}
		}
		if c.memory.Uses(s.stream) && w.call(func() error { return c.memory.Forget(s.stream) }) != nil {
			require.NoError(w.t, c.memory.Forget(s.stream), "once more")
		}
	}
	require.NoError(w.t, s.fake.DestroyStream(s.device, s.stream))
	for i := range w.own {
		for device := range w.own[i] {
			for j, other := range w.own[i][device] {
				if other == s {
					w.own[i][device][j] = nil
				}
			}
		}
	}
}

// shuffled are all streams that users know, in any order.
func (w *modelWorld) shuffled() []*ownStream {
	list := w.allStreams()
	for _, f := range w.fakes() {
		for device := range 2 {
			list = append(list, &ownStream{streamID: streamID{f, device, 0}}, &ownStream{streamID: streamID{f, device, perThread}})
		}
	}
	w.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// progress lets some streams do a little, or one all that it has.
func (w *modelWorld) progress() {
	list := w.shuffled()
	if w.random.IntN(3) == 0 {
		w.logf("the user waits for %s", w.streamName(list[0].streamID))
		require.NoError(w.t, list[0].fake.Synchronize(list[0].device, list[0].stream))
		return
	}
	for range 1 + w.random.IntN(6) {
		s := list[w.random.IntN(len(list))]
		_, err := s.fake.Idle(s.device, s.stream)
		require.NoError(w.t, err)
	}
}

func (w *modelWorld) place() place {
	return w.places[w.random.IntN(len(w.places))]
}

// streamFor is one that an array at p may have.
func (w *modelWorld) streamFor(p place) backends.Stream {
	f, device := w.cuda, p.device
	switch {
	case p.allocator.Kind() == backends.Pageable:
		return 0
	case p.allocator.Kind() == backends.Pinned:
		if device = w.random.IntN(2); left("pinned elsewhere") {
			device = 0
		}
	case p.allocator.Backend() == "hip":
		f = w.hip
	}
	return w.streamOf(f, device)
}

// give chooses o's stream. Ordinary host memory may have one of any device's, and then
// says what runtime's it is.
func (w *modelWorld) give(o *gobuffer.Options) {
	if o.Allocator.Kind() != backends.Pageable || w.random.IntN(2) == 0 {
		o.Stream = w.streamFor(place{o.Allocator, o.Device})
		return
	}
	of, a := w.random.IntN(2), backends.CUDA
	if of == 1 {
		a = backends.HIP
	}
	o.Stream, o.StreamOf = w.ownStream(w.fakes()[of], w.random.IntN(2)), a
}

func (w *modelWorld) setStream() {
	a := w.some()
	if a == nil {
		return
	}
	was := a.array.Stream()
	w.setStreamOf(a, w.streamFor(place{a.array.Allocator(), a.array.Owner()}))
	if w.random.IntN(3) == 0 {
		w.end(was)
	}
}

func (w *modelWorld) setStreamOf(a *held, s backends.Stream) {
	was := a.array.Stream()
	w.logf("%s.SetStream(%#x)", a.name, uintptr(s))
	if a.cells != nil {
		w.notice(a)
	}
	if w.call(func() error { return a.array.SetStream(s, a.array.Transfer()) }) != nil {
		require.Equal(w.t, was, a.array.Stream(), "stream after a failure")
	}
}

func (w *modelWorld) setTransfer() {
	if a := w.some(); a != nil {
		a.array.SetTransfer(gobuffer.Transfer(w.random.IntN(3)))
	}
}

func (w *modelWorld) elementType() arrayiface.ElementType {
	return [...]arrayiface.ElementType{arrayiface.Int32, arrayiface.Int32, arrayiface.Int32, arrayiface.Int64, arrayiface.Float64}[w.random.IntN(5)]
}
