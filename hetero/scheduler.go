package hetero

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer"
)

// Scheduler keeps what scheduling needs on each device: streams and events for reuse, and one
// goroutine that looks when work is over. It is safe for concurrent use. In a child that was forked
// with the Go runtime in use, neither it nor the backends serve.
type Scheduler struct {
	runtime *gobuffer.Runtime
	mutex   sync.Mutex                       // of changes of caches and allocators
	caches  atomic.Pointer[map[Place]*cache] // never changed in place
	retire  atomic.Pointer[func(backends.Stream) (bool, error)]
	watcher watcher

	allocators []hoard // all that have memory, or may
	relief     sync.Once
}

// New returns a Scheduler over the backends of a Runtime. Nothing is loaded before a device of theirs
// is used or asked for.
func New(r *gobuffer.Runtime) *Scheduler {
	s := &Scheduler{runtime: r}
	s.caches.Store(&map[Place]*cache{})
	return s
}

var process atomic.Pointer[Scheduler]

// Default returns the Scheduler of gobuffer.Default's Runtime, or gobuffer.ErrNoBackends.
func Default() (*Scheduler, error) {
	r, err := gobuffer.Default()
	if err != nil {
		return nil, err
	}
	for {
		known := process.Load()
		if known != nil && known.runtime == r {
			return known, nil
		}
		process.CompareAndSwap(known, New(r))
	}
}

// Runtime returns the Runtime whose backends are scheduled.
func (s *Scheduler) Runtime() *gobuffer.Runtime {
	if s == nil {
		return nil
	}
	return s.runtime
}

// OnRetire has f called before a stream is destroyed, by Trim or because its work has failed, with
// nobody using it any more: f makes memory that names the stream do without it (see
// gobuffer.Memory.Forget) and reports whether that is over. If it is not, or fails, the stream is kept.
// What gobuffer keeps for Cached arrays is told without it.
func (s *Scheduler) OnRetire(f func(backends.Stream) (over bool, err error)) {
	s.retire.Store(&f)
}

// cacheOf returns the cache of a place, made at its first use.
func (s *Scheduler) cacheOf(p Place) (*cache, error) {
	if s == nil {
		return nil, zeroError("scheduler", "what New and Default return")
	}
	known := s.caches.Load()
	if known == nil {
		return nil, zeroError("scheduler", "what New and Default return")
	}
	if c := (*known)[p]; c != nil {
		return c, nil
	}
	return s.newCache(p)
}

func (s *Scheduler) newCache(p Place) (*cache, error) {
	b, err := s.runtime.Named(p.Backend)
	if err != nil {
		return nil, err
	}
	streams, ok := backends.As[backends.Streams](b)
	if !ok {
		return nil, valueError("place", p, "a device of a backend that has streams: "+s.names())
	}
	count, err := b.DeviceCount()
	if err != nil {
		return nil, err
	}
	if p.Device < 0 || p.Device >= count {
		return nil, valueError("device", p.Device, devices(p.Backend, count))
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	known := *s.caches.Load()
	if c := known[p]; c != nil {
		return c, nil
	}
	changed := maps.Clone(known)
	made := &cache{
		place: p, backend: b, streams: streams, watcher: &s.watcher, leave: s.leave,
		out: map[backends.Stream]struct{}{}, all: map[backends.Stream]struct{}{},
	}
	changed[p] = made
	s.caches.Store(&changed)
	return made, nil
}

// has reports whether a cache is one of the Scheduler's.
func (s *Scheduler) has(c *cache) bool { return s != nil && c.watcher == &s.watcher }

func devices(backend string, count int) string {
	if count == 0 {
		return "none: " + backend + " has no devices here"
	}
	return fmt.Sprintf("0 … %d of %s", count-1, backend)
}
