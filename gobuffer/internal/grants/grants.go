// Package grants lists the memory that libraries hold, by its address, and frees it on threads of its own.
package grants

import (
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/waiting"
	"hamr/gobuffer/internal/counts"
)

// Grant is memory that a library holds. Nobody has a reference to it. M is the memory.
type Grant[M any] struct {
	Memory *M
	Stream backends.Stream   // of what is enqueued first and last; backends.EveryStream if nobody says
	Uses   []backends.Stream // others that use it, too
}

// on reports whether the memory is used on a stream.
func (g *Grant[M]) on(s backends.Stream) bool { return g.Stream == s || slices.Contains(g.Uses, s) }

// Addresses are multiples of 512.
const (
	shift  = 9
	bits   = 6
	shards = 1 << bits
)

// Table is what libraries hold, by address.
type Table[M any] struct {
	shards [shards]shard[M]
	ending waiting.Underway // on goroutines of their own
	ended  atomic.Uint64
	drop   atomic.Pointer[func() bool]
}

type shard[M any] struct {
	mutex sync.Mutex
	held  map[backends.Address]Grant[M]
	_     [counts.CacheBytes - 16]byte
}

func (l *Table[M]) shard(at backends.Address) *shard[M] {
	const spread = 0x9e3779b97f4a7c15
	return &l.shards[uint64(at>>shift)*spread>>(64-bits)]
}

// Add lists a grant.
func (l *Table[M]) Add(at backends.Address, of Grant[M]) {
	s := l.shard(at)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held == nil {
		s.held = map[backends.Address]Grant[M]{}
	}
	s.held[at] = of
}

// Take ends a grant; ok is false where there is none.
func (l *Table[M]) Take(at backends.Address) (of Grant[M], ok bool) {
	s := l.shard(at)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if of, ok = s.held[at]; ok {
		delete(s.held, at)
	}
	return of, ok
}

// Use remembers that another stream uses the memory of a grant; false where there is none.
func (l *Table[M]) Use(at backends.Address, stream backends.Stream) bool {
	s := l.shard(at)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	of, ok := s.held[at]
	if ok && !of.on(stream) {
		of.Uses = append(slices.Clip(of.Uses), stream)
		s.held[at] = of
	}
	return ok
}

// OnStream reports whether any grant is of a stream.
func (l *Table[M]) OnStream(stream backends.Stream) bool {
	for i := range l.shards {
		s := &l.shards[i]
		s.mutex.Lock()
		for _, of := range s.held {
			if of.on(stream) {
				s.mutex.Unlock()
				return true
			}
		}
		s.mutex.Unlock()
	}
	return false
}

// Aside runs end on another thread, which Wait waits for.
func (l *Table[M]) Aside(end func()) {
	number := l.ending.Begin()
	go func() {
		defer l.hasEnded(number)
		end()
	}()
}

func (l *Table[M]) hasEnded(number uint64) {
	l.ended.Add(1)
	l.ending.End(number)
}

// Wait waits for all that Aside has begun before, and not for what others begin meanwhile.
func (l *Table[M]) Wait() { l.ending.Wait() }

// WaitSince waits, too, and reports whether anything ended since ended was before.
func (l *Table[M]) WaitSince(before uint64) bool {
	l.Wait()
	return l.ended.Load() != before
}

// Pending reports whether any are ending.
func (l *Table[M]) Pending() bool { return l.ending.Some() }

// Ended is how many have ended so far.
func (l *Table[M]) Ended() uint64 { return l.ended.Load() }

// Keep registers a function that gives back what a library has freed and somebody keeps for it; nil is none.
func (l *Table[M]) Keep(drop func() bool) {
	if drop == nil {
		l.drop.Store(nil)
		return
	}
	l.drop.Store(&drop)
}

// Drop calls the function of Keep and reports whether it gave anything back.
func (l *Table[M]) Drop() bool {
	drop := l.drop.Load()
	return drop != nil && (*drop)()
}
