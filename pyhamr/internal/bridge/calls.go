package bridge

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hamr/backends"
)

// Calls are those that may have seen which stream work is pending on, so that the stream must not end under them.
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

// drain waits until all calls that have begun before are over, but no longer than limit, and reports whether they are.
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

func init() { Scheduler.OnRetire(Retire) }

// mostPatience is how long the end of a stream waits for calls of other threads.
const mostPatience = time.Second

// RetireNamed is Retire of a stream that nobody names any more. A stream of the Scheduler does not end then: code that
// has only its number may have had it when somebody else took it. Where nothing has kept the stream from its end, it is
// not asked.
func RetireNamed(s backends.Stream, kept bool) (over bool, err error) {
	if Scheduler.Has(s) {
		return true, nil
	}
	if !kept {
		defer Runtime.Unasked(s)()
	}
	return Retire(s)
}

// Retire makes all memory that Python holds do without a stream that is about to end, and reports whether no call that
// is under way may still have to do with the stream.
func Retire(s backends.Stream) (over bool, err error) {
	var failed error
	for _, m := range tokens.using(s) {
		if err := m.Forget(s); err != nil && failed == nil {
			failed = err
		}
		if err := m.Release(); err != nil && failed == nil {
			failed = err
		}
	}
	forgets := []func(backends.Stream) error{Runtime.LeaveKept, Runtime.ForgetStream, Scheduler.ForgetStream}
	for _, forget := range forgets {
		if err := forget(s); err != nil && failed == nil {
			failed = err
		}
	}
	return Calls.drain(mostPatience), failed
}
