package backendtest

import "hamr/backends"

// Device is a stand-in for a device that tests can look into: a Fake, or a backend that was made to test the core.
type Device interface {
	backends.Backend
	backends.Streams
	backends.DeviceSynchronizer
	Counter
	Launcher

	// Peek returns a copy of memory as it is now for whoever may use it, with no regard to
	// pending work; Poke writes it.
	Peek(at backends.Address, size int) []byte
	Poke(at backends.Address, data []byte)

	// FailAt makes the nth call from now on of the named method return err and do nothing
	// else; nth zero means every call. StopFailing forgets all that have not failed.
	FailAt(call string, nth int, err error)
	StopFailing()
	// CallCount returns how often a method was called.
	CallCount(call string) int

	// Finish does all pending work.
	Finish()
	// Violations lists every misuse so far, in words.
	Violations() []string
	// LiveHandles counts streams that somebody made, and events.
	LiveHandles() (streams, events int)
}

// Launcher is implemented by stand-ins for a device on whose streams tests can put work as
// other libraries do.
type Launcher interface {
	// Launch enqueues a kernel, a function that gets at memory of the backend's through its
	// argument, which must not call the backend. It runs after the kernels before it, and
	// in the order with the backend's own calls that backends.Streams says, for which it
	// does nothing itself: a queue that is out of order keeps none for it.
	Launch(device int, s backends.Stream, kernel func(memory func(at backends.Address, size int) []byte)) error
}

// EventProducer is implemented by stand-ins, and by tests' wrappers of backends, that can play
// somebody who has work on a stream and an event of the vendor's for it.
type EventProducer interface {
	// VendorEvent returns an event for what the stream holds, as EventAdopter takes, and what
	// ends the producer's own reference to it.
	VendorEvent(device int, s backends.Stream) (handle uintptr, release func(), err error)
}

var _ Device = (*Fake)(nil)

var _ backends.Launcher = (*Fake)(nil)
