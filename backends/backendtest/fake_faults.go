package backendtest

import (
	"fmt"
	"slices"
	"testing"

	"hamr/backends"
)

// mostCalls is how long the log of calls may grow.
const mostCalls = 1 << 16

// fault is an error that waits for its call.
type fault struct {
	call string
	left int // calls until it strikes; zero strikes every time
	err  error
}

// FailAt makes the nth call from now on of the named method return err and do
// nothing else; nth zero means every call. "Execute" names late work itself: its
// error comes back from whoever waits for it.
func (f *Fake) FailAt(call string, nth int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault{call, nth, err})
}

// StopFailing forgets all faults that have not struck.
func (f *Fake) StopFailing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

func (f *Fake) injected(call string) (err error) {
	f.faults = slices.DeleteFunc(f.faults, func(x *fault) bool {
		if x.call != call {
			return false
		}
		if x.left == 0 {
			err = x.err
			return false
		}
		x.left--
		if x.left == 0 {
			err = x.err
			return true
		}
		return false
	})
	return err
}

// enter logs a call and returns the error that was injected for it.
func (f *Fake) enter(call, format string, arguments ...any) error {
	if !f.probed {
		_ = f.violate(call, "called before Probe")
	}
	if err := f.checkThread(call); err != nil {
		return err
	}
	f.counts[call]++
	if len(f.calls) == mostCalls {
		f.calls = slices.Delete(f.calls, 0, mostCalls/2)
	}
	f.calls = append(f.calls, call+"("+fmt.Sprintf(format, arguments...)+")")
	return f.injected(call)
}

func (f *Fake) violate(call, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	f.violations = append(f.violations, call+": "+message)
	return &backends.DeviceError{API: "fake " + f.Name(), Call: call, Name: "FAKE_ERROR_INVALID_VALUE",
		Code: 1, Message: message}
}

// Violations lists every misuse so far, in words.
func (f *Fake) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.violations)
}

// Calls lists the latest calls, oldest first, as in "Idle(device 0, stream 0x0)".
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// CallCount returns how often a method was called.
func (f *Fake) CallCount(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[call]
}

// Live counts what was allocated and not freed.
func (f *Fake) Live() (allocations, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.blocks {
		if !b.freeing {
			allocations++
			bytes += b.size
		}
	}
	return allocations, bytes
}

// LiveHandles counts streams, without the default ones, and events.
func (f *Fake) LiveHandles() (streams, events int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams) - len(f.defaults) - len(f.threads) - len(f.followers), len(f.events)
}

// Finish does all pending work.
func (f *Fake) Finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.busy) > 0 {
		f.finish(f.busy[0])
	}
}

// AssertClean does all pending work, then fails t for each violation and for
// memory that was not freed. Streams and events may be pooled: LiveHandles
// counts them.
func (f *Fake) AssertClean(t testing.TB) {
	t.Helper()
	f.Finish()
	for _, v := range f.Violations() {
		t.Errorf("fake %s: %s", f.Name(), v)
	}
	if allocations, bytes := f.Live(); allocations != 0 {
		t.Errorf("fake %s: leak of %d allocations, %d bytes", f.Name(), allocations, bytes)
	}
}
