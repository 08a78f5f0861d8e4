// Package queues makes streams and events out of a runtime's queues and events, as OpenCL and SYCL have them. A queue
// may keep no order, so each piece of work goes between two barriers there. A marker tells whether a queue is idle.
package queues

import (
	"fmt"

	"hamr/backends"
)

// Runtime is the calls of one runtime. Queues and events are its own handles.
type Runtime interface {
	// Default returns the default queue of a device, and opens the device if nobody has yet. Call is the method that
	// errors name, here and below.
	Default(call string, device int) (*Queue, error)
	// Create makes a queue of an open device by Queues.Own. It keeps its order. Release drops our reference to a queue.
	Create(device int) (*Queue, error)
	Release(queue uintptr) error
	// Inspect returns the device of a queue that somebody else made, and whether it keeps its order. The error is
	// NoStream's for the handle of something else.
	Inspect(call string, queue uintptr) (device int, ordered bool, err error)

	// Barrier makes later work on a queue wait for all earlier work.
	Barrier(queue uintptr) error
	// Behind makes later work on a queue wait for an event of a device.
	Behind(q *Queue, event uintptr, device int) error
	// Mark returns an event that is over when all earlier work on a queue is. It may return both an event and an error.
	Mark(queue uintptr) (event uintptr, err error)
	// Finish blocks until all work on a queue is over.
	Finish(queue uintptr) error

	// Retain returns a reference of our own to an event, and Drop drops it.
	Retain(event uintptr) (uintptr, error)
	Drop(event uintptr)
	Status(event uintptr) (Status, error)
	// Failed returns the error of a status below Complete: of the marker that Idle made, or of an event.
	Failed(status Status, marker bool) error
	// Late returns and forgets an error of earlier work that belongs to no event, if there is one.
	Late() error
	// WaitFor blocks until an event is over.
	WaitFor(event uintptr) error
	// End returns when an event was over, in nanoseconds by the device's clock; known is false where that is not kept.
	End(event uintptr) (at uint64, known bool, err error)

	// InvalidQueue and InvalidEvent return the error for an argument that is not the right one.
	InvalidQueue(call, message string) error
	InvalidEvent(call, message string) error
}

// Status is how far the work is that an event stands for. Above Complete it is under way, below it has failed.
type Status int32

// Complete is the status of work that is over.
const Complete Status = 0

// NoStream is the error for a handle that is no queue's.
func NoStream(handle uintptr) error { return fmt.Errorf("%w at %#x", backends.ErrNoStream, handle) }
