package pool

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

var runs = flag.Int("pool.runs", 60, "walks at random of each kind")

// holding is memory that the walk has, and the stream that it is used on.
type holding struct {
	at     backends.Address
	handle backends.Stream
}

// walk is a run at random over a Pool and a fake source, which notes each misuse.
type walk struct {
	t       *testing.T
	random  *rand.Rand
	fake    *fakeSource
	pool    *Pool
	held    []holding
	failing bool
}

const handles = 6 // of which the first never ends

func newWalk(t *testing.T, seed uint64, faults bool) *walk {
	w := &walk{t: t, random: rand.New(rand.NewPCG(seed, 1)), fake: newFake(t), failing: faults}
	w.fake.capacity = (4 + w.random.IntN(30)) * Segment
	w.fake.stream(1, true)
	for handle := 2; handle <= handles; handle++ {
		w.begin(backends.Stream(handle))
	}
	w.pool = New(w.fake, w.random.IntN(20)*Segment)
	w.fake.fail = func(string) bool { return w.failing && w.random.IntN(12) == 0 }
	return w
}

func (w *walk) begin(handle backends.Stream) {
	s := w.fake.stream(handle, w.random.IntN(2) == 0)
	s.elsewhere = !s.lasting && w.random.IntN(3) == 0
}

func (w *walk) anyHandle() backends.Stream { return backends.Stream(1 + w.random.IntN(handles)) }

func (w *walk) take() {
	size := 1 + w.random.IntN(4*Alignment)
	switch w.random.IntN(4) {
	case 0:
		size = 1 + w.random.IntN(LargestSmall)
	case 1:
		size = 1 + w.random.IntN(5*Segment)
	}
	handle := w.anyHandle()
	s := w.fake.streams[handle]
	if w.random.IntN(8) == 0 {
		handle, s = backends.EveryStream, nil
	}
	at, err := w.takeSomehow(size, handle)
	if err != nil {
		require.True(w.t, errors.Is(err, errFull) || errors.Is(err, errFault), err)
		return
	}
	start, bytes, ours := w.pool.Find(at + backends.Address(size-1))
	require.True(w.t, ours && start == at)
	require.GreaterOrEqual(w.t, bytes, size)
	w.fake.took(at, bytes, s)
	if s == nil {
		handle = w.anyHandle()
		s = w.fake.streams[handle]
	}
	w.fake.works(at, s)
	w.held = append(w.held, holding{at, handle})
}

// takeSomehow takes memory in one of two ways, of which the first asks the source nothing.
func (w *walk) takeSomehow(size int, handle backends.Stream) (backends.Address, error) {
	if w.random.IntN(2) == 0 {
		calls := w.fake.total()
		at, ok := w.pool.TakeAtOnce(size, handle)
		require.Equal(w.t, calls, w.fake.total())
		if ok {
			return at, nil
		}
	}
	return w.pool.Take(size, handle)
}

// use puts work on what is held, perhaps on another stream after what its own one holds.
func (w *walk) use() {
	if len(w.held) == 0 {
		return
	}
	h := &w.held[w.random.IntN(len(w.held))]
	if to := w.anyHandle(); w.random.IntN(3) == 0 {
		w.follow(to, h.handle)
		h.handle = to
	}
	w.fake.works(h.at, w.fake.streams[h.handle])
}

func (w *walk) follow(to, from backends.Stream) {
	s, before := w.fake.streams[to], w.fake.streams[from]
	if s != before {
		s.waits[s.queued] = fakeEvent{before, before.queued}
		s.queued++
	}
}

func (w *walk) giveBack() {
	if len(w.held) == 0 {
		return
	}
	i := w.random.IntN(len(w.held))
	h := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	delete(w.fake.lent, h.at)
	handle := h.handle
	if w.random.IntN(10) == 0 && !w.fake.streams[handle].elsewhere {
		handle = backends.EveryStream
	}
	ours := w.random.IntN(2) == 0 && w.pool.GiveBackAtOnce(h.at, handle)
	var err error
	if !ours {
		ours, err = w.pool.GiveBack(h.at, handle)
	}
	require.True(w.t, ours)
	require.True(w.t, err == nil || errors.Is(err, errFault), err)
	_, bytes, _ := w.pool.Find(h.at)
	require.Zero(w.t, bytes, "what was given back is nobody's")
	_, err = w.pool.GiveBack(h.at, handle)
	require.True(w.t, err == nil || errors.Is(err, ErrNotLent), err)
}

// replace ends a stream and begins another of the same handle.
func (w *walk) replace() {
	handle := backends.Stream(2 + w.random.IntN(handles-1))
	for i := range w.held {
		if w.held[i].handle == handle {
			w.follow(1, handle)
			w.held[i].handle = 1
		}
	}
	if w.fake.streams[handle].lasting {
		w.pool.EndStream(handle)
	}
	w.begin(handle)
}

func (w *walk) step() {
	switch w.random.IntN(12) {
	case 0, 1, 2, 3:
		w.take()
	case 4, 5, 6:
		w.giveBack()
	case 7, 8:
		w.use()
	case 9:
		w.fake.progress(w.random)
	case 10:
		if w.random.IntN(4) == 0 {
			w.replace()
		}
	case 11:
		if w.random.IntN(10) == 0 {
			err := w.pool.Trim()
			require.True(w.t, err == nil || errors.Is(err, errFault), err)
		}
	}
}

// end gives all back: then nothing may be left.
func (w *walk) end() {
	w.failing = false
	for len(w.held) > 0 {
		w.giveBack()
	}
	for _, s := range w.fake.all {
		s.run(s.queued)
	}
	require.NoError(w.t, w.pool.Trim())
	w.pool.check(w.t)
	require.Empty(w.t, w.fake.memory)
	s := w.pool.Statistics()
	require.Zero(w.t, s.Reserved)
	require.Zero(w.t, s.Lent)
	require.Zero(w.t, s.LargestFree)
	w.pool.mutex.Lock()
	w.pool.poll()
	w.pool.mutex.Unlock()
	require.Empty(w.t, w.fake.events, "events leak")
	require.Empty(w.t, w.pool.ended)
}

func TestModel(t *testing.T) {
	for _, faults := range []bool{false, true} {
		t.Run(fmt.Sprintf("faults=%v", faults), func(t *testing.T) {
			for seed := range *runs {
				w := newWalk(t, uint64(seed), faults)
				for range 600 {
					w.step()
					if t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
				w.pool.check(t)
				w.end()
			}
		})
	}
}
