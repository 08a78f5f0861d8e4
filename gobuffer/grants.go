package gobuffer

import (
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/waiting"
)

// grant is memory that a library has.
type grant struct {
	// Nobody has a reference to it. Its stream is that of what is enqueued first and last, and
	// backends.EveryStream where nobody says.
	memory *Memory
	uses   []backends.Stream // others that use it, too
}

// Addresses are multiples of 512.
const (
	grantShift  = 9
	grantBits   = 6
	grantShards = 1 << grantBits
)

// grants are what libraries have, by address.
type grants struct {
	shards [grantShards]grantShard
	ending waiting.Underway // on goroutines of their own
	ended  atomic.Uint64
	drop   atomic.Pointer[func() bool] // see KeepGranted
}

type grantShard struct {
	mutex sync.Mutex
	held  map[backends.Address]grant
	_     [partBytes - 16]byte
}

func (l *grants) shard(at backends.Address) *grantShard {
	const spread = 0x9e3779b97f4a7c15
	return &l.shards[uint64(at>>grantShift)*spread>>(64-grantBits)]
}

func (l *grants) add(at backends.Address, of grant) {
	s := l.shard(at)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held == nil {
		s.held = map[backends.Address]grant{}
	}
	s.held[at] = of
}

// take ends a grant; ok is false where there is none.
func (l *grants) take(at backends.Address) (of grant, ok bool) {
	s := l.shard(at)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if of, ok = s.held[at]; ok {
		delete(s.held, at)
	}
	return of, ok
}

// use remembers that another stream uses the memory of a grant; false where there is none.
func (l *grants) use(at backends.Address, stream backends.Stream) bool {
	s := l.shard(at)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	of, ok := s.held[at]
	if ok && of.memory.ordered() != stream && !slices.Contains(of.uses, stream) {
		of.uses = append(slices.Clip(of.uses), stream)
		s.held[at] = of
	}
	return ok
}

// onStream reports whether any grant is of a stream.
func (l *grants) onStream(stream backends.Stream) bool {
	for i := range l.shards {
		s := &l.shards[i]
		s.mutex.Lock()
		for _, of := range s.held {
			if of.memory.ordered() == stream || slices.Contains(of.uses, stream) {
				s.mutex.Unlock()
				return true
			}
		}
		s.mutex.Unlock()
	}
	return false
}

// aside runs end on another thread, which wait waits for.
func (l *grants) aside(end func()) {
	number := l.ending.Begin()
	go func() {
		defer l.hasEnded(number)
		end()
	}()
}

func (l *grants) hasEnded(number uint64) {
	l.ended.Add(1)
	l.ending.End(number)
}

// wait waits for all that aside has begun before, and not for what others begin meanwhile.
func (l *grants) wait() { l.ending.Wait() }

// waitSince waits, too, and reports whether anything ended since ended was before.
func (l *grants) waitSince(before uint64) bool {
	l.wait()
	return l.ended.Load() != before
}

// pending reports whether any are ending.
func (l *grants) pending() bool { return l.ending.Some() }

func (r *Runtime) dropGranted() bool {
	drop := r.grants.drop.Load()
	return drop != nil && (*drop)()
}
