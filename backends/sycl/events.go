package sycl

import (
	"hamr/backends/internal/dl"
	"hamr/backends/internal/queues"
)

const statusComplete = 3

func (r driver) Retain(event uintptr) (uintptr, error) { return r.made(r.library.CopyEvent, event) }

func (r driver) Drop(event uintptr) { r.release(event) }

// release deletes a reference to a sycl::event.
func (b *Backend) release(event uintptr) { dl.Call(b.library.DeleteEvent, event) }

// over reports whether a sycl::event is complete.
func (b *Backend) over(event uintptr) bool {
	return uint32(dl.Call(b.library.EventStatus, event)) == statusComplete
}

func (r driver) Status(event uintptr) (queues.Status, error) {
	if r.over(event) {
		return queues.Complete, nil
	}
	return queues.Complete + 1, nil
}

// Failed is nil: SYCL's statuses tell nothing about failures.
func (driver) Failed(queues.Status, bool) error { return nil }

// Late returns what has failed on any queue.
func (r driver) Late() error { return r.late(r.library.EventStatus) }

// WaitFor makes SYCL pass asynchronous exceptions to the handler. For another exception it only returns early.
func (r driver) WaitFor(event uintptr) error {
	dl.Call(r.library.WaitForEvent, event)
	if err := r.late(r.library.WaitForEvent); err != nil {
		return err
	}
	if !r.over(event) {
		return r.refused(r.library.WaitForEvent)
	}
	return nil
}

// End is zero on a queue without times.
func (r driver) End(event uintptr) (at uint64, known bool, err error) {
	at = uint64(dl.Call(r.library.EventEnd, event))
	return at, at != 0, nil
}
