package gobuffer_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// streamOf is a stream of a device, of its own or not.
func (w *modelWorld) streamOf(f backendtest.Device, device int) backends.Stream {
	switch w.random.IntN(8) {
	case 0, 1:
		return 0
	case 2:
		if s := backends.Stream(w.random.IntN(2) + 1); hasStream(f, s) {
			return s
		}
	}
	return w.ownStream(f, device)
}

func (w *modelWorld) ownStream(f backendtest.Device, device int) backends.Stream {
	of := slices.Index(w.devices, f)
	at := &w.own[of][device][w.random.IntN(w.streams)]
	if *at == nil {
		s, err := f.NewStream(device)
		require.NoError(w.t, err)
		*at = &ownStream{streamID{f, device, s}, w.name("s")}
		w.streamDevice[s] = device
	}
	return (*at).stream
}

// allocatorsOf are those of a runtime.
func allocatorsOf(d backendtest.Device) (list []backends.Allocator) {
	for _, a := range backends.Allocators() {
		if a.Backend() == d.Name() {
			list = append(list, a)
		}
	}
	return list
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
	for _, f := range w.devices {
		for device := range 2 {
			list = append(list, &ownStream{streamID: streamID{f, device, 0}})
			if hasStream(f, perThread) {
				list = append(list, &ownStream{streamID: streamID{f, device, perThread}})
			}
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
	device := p.device
	switch {
	case p.allocator.Kind() == backends.Pageable:
		return 0
	case p.allocator.Kind() == backends.Pinned:
		if device = w.random.IntN(2); left("pinned elsewhere") {
			device = 0
		}
	}
	return w.streamOf(w.named(p.allocator.Backend()), device)
}

// give chooses o's stream. Ordinary host memory may have one of any device's, and then
// says what runtime's it is.
func (w *modelWorld) give(o *gobuffer.Options) {
	if o.Allocator.Kind() != backends.Pageable || w.random.IntN(2) == 0 {
		o.Stream = w.streamFor(place{o.Allocator, o.Device})
		return
	}
	of := w.random.IntN(2)
	o.Stream, o.StreamOf = w.ownStream(w.devices[of], w.random.IntN(2)), allocatorsOf(w.devices[of])[0]
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
