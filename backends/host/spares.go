package host

import (
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// Freed small blocks wait here for reuse. glibc's own cache of small blocks does
// not know alignment: a 64-byte aligned block costs a search and a split there,
// 130 ns where taking one from here costs 10.
const (
	largestSpare = 4096
	sparesEach   = 16
	alignment    = 64
)

// spares holds up to sparesEach blocks of each multiple of the alignment, 540 KiB
// at the most.
type spares struct {
	classes [largestSpare / alignment]class
	closed  atomic.Bool // none is kept
}

// close says whether none is kept any longer.
func (s *spares) close(closed bool, free func(backends.Address)) {
	if s.closed.Store(closed); closed {
		s.drain(free)
	}
}

type class struct {
	mutex  sync.Mutex
	blocks [sparesEach]backends.Address
	count  int
	hits   int64
	misses int64
}

func roundUp(size int) int { return (size + alignment - 1) &^ (alignment - 1) }

func (s *spares) class(size int) *class { return &s.classes[(size-1)/alignment] }

// take returns a block for size bytes, or zero.
func (s *spares) take(size int) backends.Address {
	c := s.class(size)
	var at backends.Address
	c.mutex.Lock()
	if c.count > 0 {
		c.count--
		c.hits++
		at = c.blocks[c.count]
	} else {
		c.misses++
	}
	c.mutex.Unlock()
	return at
}

// put keeps a block that was allocated for size bytes, and reports false if there are enough.
func (s *spares) put(size int, at backends.Address) bool {
	c := s.class(size)
	c.mutex.Lock()
	room := c.count < sparesEach && !s.closed.Load()
	if room {
		c.blocks[c.count] = at
		c.count++
	}
	c.mutex.Unlock()
	return room
}

// drain hands every block to free.
func (s *spares) drain(free func(backends.Address)) {
	for i := range s.classes {
		c := &s.classes[i]
		c.mutex.Lock()
		for _, at := range c.blocks[:c.count] {
			free(at)
		}
		c.count = 0
		c.mutex.Unlock()
	}
}
