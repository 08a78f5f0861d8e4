package backendtest

import (
	"fmt"
	"slices"

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
func (f *fakeBase) FailAt(call string, nth int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault{call, nth, err})
}

// StopFailing forgets all faults that have not struck.
func (f *fakeBase) StopFailing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

func (f *fakeBase) injected(call string) (err error) {
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
func (f *fakeBase) enter(call, format string, arguments ...any) error {
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

func (f *fakeBase) violate(call, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	f.violations = append(f.violations, call+": "+message)
	return &backends.DeviceError{API: "fake " + f.Name(), Call: call, Name: "FAKE_ERROR_INVALID_VALUE",
		Code: 1, Message: message}
}

// Violations lists every misuse so far, in words.
func (f *fakeBase) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.violations)
}

// Calls lists the latest calls, oldest first, as in "Idle(device 0, stream 0x0)".
func (f *fakeBase) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// CallCount returns how often a method was called.
func (f *fakeBase) CallCount(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[call]
}
