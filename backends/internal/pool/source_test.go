package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends"
)

var (
	errFull  = errors.New("the device is full")
	errFault = errors.New("injected")
)

// fakeStream is a queue that runs when somebody lets it. Items are known by their places.
type fakeStream struct {
	lasting, elsewhere bool // elsewhere: of another context, which no wait for the device covers
	waits              map[int]fakeEvent
	queued, done       int
}

// fakeEvent is all that a stream held.
type fakeEvent struct {
	stream *fakeStream
	place  int
}

func (e fakeEvent) over() bool { return e.stream.done >= e.place }

// use is work on memory: the item of a stream up to which it lasts.
type use struct {
	at   backends.Address
	size int
	by   fakeEvent
}

// fakeSource has memory that is only numbers, and notes who may still use which part.
type fakeSource struct {
	t        testing.TB
	capacity int
	next     backends.Address
	memory   map[backends.Address]int
	lent     map[backends.Address]int // blocks that somebody holds
	uses     []use
	streams  map[backends.Stream]*fakeStream // by handle
	all      []*fakeStream
	events   map[backends.Event]fakeEvent
	made     int
	calls    map[string]int
	fail     func(call string) bool
	mutex    sync.Mutex // held by the methods of Source
}

func newFake(t testing.TB) *fakeSource {
	return &fakeSource{t: t, capacity: 1 << 40, next: Segment, memory: map[backends.Address]int{},
		lent:    map[backends.Address]int{},
		streams: map[backends.Stream]*fakeStream{}, events: map[backends.Event]fakeEvent{}, calls: map[string]int{}}
}

func (f *fakeSource) stream(handle backends.Stream, lasting bool) *fakeStream {
	s := &fakeStream{lasting: lasting, waits: map[int]fakeEvent{}}
	f.streams[handle] = s
	f.all = append(f.all, s)
	return s
}

func (f *fakeSource) enter(call string) error {
	f.calls[call]++
	if f.fail != nil && f.fail(call) {
		return fmt.Errorf("%s: %w", call, errFault)
	}
	return nil
}

// total is how many calls of those that may fail there were.
func (f *fakeSource) total() (calls int) {
	for _, count := range f.calls {
		calls += count
	}
	return calls
}

func (f *fakeSource) reserved() (bytes int) {
	for _, size := range f.memory {
		bytes += size
	}
	return bytes
}

func (f *fakeSource) Allocate(size int) (backends.Address, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.enter("Allocate"); err != nil {
		return 0, err
	}
	if f.reserved()+size > f.capacity {
		return 0, errFull
	}
	at := f.next
	f.next += backends.Address(size) // the neighbour of the last, so that joining too much shows
	f.memory[at] = size
	return at, nil
}

func (f *fakeSource) Free(at backends.Address) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.enter("Free"); err != nil {
		return err
	}
	size, ok := f.memory[at]
	require.True(f.t, ok, "free of what was not allocated")
	f.rest()
	for each, bytes := range f.lent {
		require.False(f.t, overlap(at, size, each, bytes), "free of memory that somebody holds")
	}
	for _, u := range f.uses {
		require.False(f.t, overlap(at, size, u.at, u.size) && !u.by.over(), "free of memory under work")
	}
	delete(f.memory, at)
	return nil
}

func (f *fakeSource) Full(err error) bool { return errors.Is(err, errFull) }

func (f *fakeSource) Lasting(s backends.Stream) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.streams[s]
	return found != nil && found.lasting
}

func (f *fakeSource) Idle(s backends.Stream) (bool, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.enter("Idle"); err != nil {
		return false, err
	}
	found := f.streams[s]
	require.NotNil(f.t, found, "a stream that has ended is asked")
	return found.done == found.queued, nil
}

func (f *fakeSource) Record(s backends.Stream) (backends.Event, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.streams[s]
	require.NotNil(f.t, found, "an event is recorded on a stream that has ended")
	if err := f.enter("Record"); err != nil {
		found.elsewhere = false
		return 0, err
	}
	f.made++
	f.events[backends.Event(f.made)] = fakeEvent{found, found.queued}
	return backends.Event(f.made), nil
}

func (f *fakeSource) Done(e backends.Event) (bool, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.enter("Done"); err != nil {
		return false, err
	}
	found, ok := f.events[e]
	require.True(f.t, ok, "an event is used that was destroyed")
	return found.over(), nil
}

func (f *fakeSource) Wait(s backends.Stream, e backends.Event) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.enter("Wait"); err != nil {
		return err
	}
	found, ok := f.events[e]
	require.True(f.t, ok, "an event is used that was destroyed")
	f.streams[s].waits[f.streams[s].queued] = found
	f.streams[s].queued++
	return nil
}

func (f *fakeSource) Destroy(e backends.Event) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	require.Contains(f.t, f.events, e)
	delete(f.events, e)
}

func (f *fakeSource) Synchronize() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.enter("Synchronize"); err != nil {
		return err
	}
	f.rest()
	return nil
}

// rest runs all that a wait for the device covers.
func (f *fakeSource) rest() {
	for _, s := range f.all {
		if !s.elsewhere {
			s.run(s.queued)
		}
	}
}

// run runs items up to a place, and others' that they wait for.
func (s *fakeStream) run(upTo int) {
	for s.done < upTo {
		if e, ok := s.waits[s.done]; ok && e.stream != s {
			e.stream.run(e.place)
		}
		s.done++
	}
}

// before is how far each stream is when s comes to its end.
func (s *fakeStream) before(upTo int, reached map[*fakeStream]int) {
	if from, seen := reached[s]; seen && from >= upTo {
		return
	}
	reached[s] = upTo
	for place := s.done; place < upTo; place++ {
		if e, ok := s.waits[place]; ok {
			e.stream.before(e.place, reached)
		}
	}
}

func overlap(a backends.Address, aSize int, b backends.Address, bSize int) bool {
	return a < b+backends.Address(bSize) && b < a+backends.Address(aSize)
}

// took checks that nobody uses memory once a stream has come to it: none for any stream.
func (f *fakeSource) took(at backends.Address, size int, s *fakeStream) {
	inside := false
	for each, bytes := range f.memory {
		inside = inside || (at >= each && at+backends.Address(size) <= each+backends.Address(bytes))
	}
	require.True(f.t, inside, "memory that the driver has not given")
	require.Zero(f.t, at%Alignment)
	for each, bytes := range f.lent {
		require.False(f.t, overlap(at, size, each, bytes), "memory that somebody holds")
	}
	reached := map[*fakeStream]int{}
	if s != nil {
		s.before(s.queued, reached)
	}
	pending := f.uses[:0]
	for _, u := range f.uses {
		if u.by.over() {
			continue
		}
		pending = append(pending, u)
		if overlap(at, size, u.at, u.size) {
			require.GreaterOrEqual(f.t, reached[u.by.stream], u.by.place, "memory that another stream still uses")
		}
	}
	f.uses = pending
	f.lent[at] = size
}

// works puts work on memory on a stream.
func (f *fakeSource) works(at backends.Address, s *fakeStream) {
	s.queued++
	f.uses = append(f.uses, use{at, f.lent[at], fakeEvent{s, s.queued}})
}

// progress lets some streams run on for a while.
func (f *fakeSource) progress(random *rand.Rand) {
	for _, s := range f.all {
		if left := s.queued - s.done; left > 0 && random.IntN(3) == 0 {
			s.run(s.done + 1 + random.IntN(left))
		}
	}
}

// check fails for lists and blocks that contradict each other.
func (p *Pool) check(t testing.TB) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	reserved, lent, free := 0, 0, 0
	for _, g := range p.segments {
		size, held := 0, 0
		reserved += g.size
		for b := g.first; b != nil; b = b.next {
			require.Equal(t, g.at+backends.Address(size), b.at)
			require.True(t, b.next == nil || b.next.previous == b)
			found, ok := p.blocks.Load(b.at)
			require.True(t, ok && found == b, "a block is not found by its address")
			size += b.size
			if b.state.Load() != stateFree {
				held++
				lent += b.size
				continue
			}
			free++
			require.Contains(t, *b.list(), b)
			require.False(t, b.next != nil && b.next.state.Load() == stateFree && b.next.owner == b.owner && !b.owner.apart(),
				"neighbours are apart")
		}
		require.Equal(t, g.size, size)
		require.Equal(t, g.lent, held)
	}
	require.Equal(t, p.reserved, reserved)
	require.Equal(t, p.lent, lent)
	listed := p.anybody.blocks() + p.lost.blocks()
	for _, s := range p.streams {
		listed += s.blocks()
	}
	for _, s := range p.ended {
		listed += s.blocks()
	}
	require.Equal(t, free, listed)
	require.Zero(t, p.asked)
}
