package bridge

import (
	"time"

	"hamr/backends"
	poll "hamr/backends/waiting"
	"hamr/gobuffer"
)

// WaitArray waits until no work is pending on d's elements, but no longer than patience,
// and reports whether that is so.
func WaitArray(d *Descriptor, patience time.Duration) (over bool, err error) {
	defer Guard(&err)
	a, err := d.Array()
	if err != nil {
		return false, err
	}
	defer a.Close()
	return poll.Poll(patience, func() (bool, error) { return idle(a) })
}

// idle is a call of its own each time it is asked: a stream may end in between.
func idle(a *gobuffer.Array) (bool, error) {
	defer Calls.Leave(Calls.Enter())
	if busy, err := a.Pending(); busy || err != nil {
		return false, err
	}
	_, busy, err := a.Covering() // which waits where no stream stands for what is pending
	return !busy, err
}

// WaitStream waits until all work on a stream is over, but no longer than patience, and reports whether it is.
func WaitStream(backend string, device int, s backends.Stream, patience time.Duration) (bool, error) {
	return with(backend, device, func(able backends.Streams, device int) (bool, error) {
		return poll.Poll(patience, func() (bool, error) { return able.Idle(device, s) })
	})
}

// WaitEvent is WaitStream for an event.
func WaitEvent(backend string, device int, e backends.Event, patience time.Duration) (bool, error) {
	return with(backend, device, func(able backends.Streams, device int) (bool, error) {
		return poll.Poll(patience, func() (bool, error) { return able.Done(device, e) })
	})
}
