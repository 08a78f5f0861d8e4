package bridge

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Calls are those that may have seen which stream work is pending on, so that the
// stream must not end under them.
var Calls calls

// calls counts what is under way in two phases, of which only one is entered: what
// was there before the phase changed is over when the other is empty.
type calls struct {
	mutex  sync.Mutex // of drain
	phase  atomic.Uint32
	inside [2]atomic.Int64
}

// Enter begins a call; the result is for Leave.
func (c *calls) Enter() uint32 {
	for {
		phase := c.phase.Load()
		c.inside[phase].Add(1)
		if c.phase.Load() == phase {
			return phase
		}
		c.inside[phase].Add(-1)
	}
}

// Leave ends a call.
func (c *calls) Leave(phase uint32) { c.inside[phase].Add(-1) }

// drain waits until all calls that have begun before are over, but no longer than
// limit, and reports whether they are.
func (c *calls) drain(limit time.Duration) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	start := time.Now()
	// Twice, since a drain that gave up left calls in the phase that is entered now.
	for range 2 {
		old := c.phase.Load()
		c.phase.Store(1 - old)
		for c.inside[old].Load() != 0 {
			if time.Since(start) > limit {
				return false
			}
			runtime.Gosched()
			time.Sleep(10 * time.Microsecond)
		}
	}
	return true
}
