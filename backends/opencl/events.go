package opencl

import (
	"errors"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/queues"
)

const (
	eventStatus  = 0x11D3
	profilingEnd = 0x1283
	complete     = 0 // queues.Complete: OpenCL's statuses are those of queues
)

func (r driver) Retain(event uintptr) (uintptr, error) {
	return event, r.call(r.library.RetainEvent, event)
}

func (r driver) Drop(event uintptr) { r.release(event) }

// release drops a reference to a cl_event.
func (b *Backend) release(event uintptr) { _ = b.call(b.library.ReleaseEvent, event) }

func (r driver) Status(event uintptr) (queues.Status, error) {
	status, err := r.status(event)
	return queues.Status(status), err
}

// status is that of a cl_event.
func (b *Backend) status(event uintptr) (int32, error) {
	value, code := info(b.library.GetEventInfo, event, eventStatus)
	if code != success {
		return 0, failure("clGetEventInfo", code, "")
	}
	return int32(integer(value)), nil
}

func (driver) Failed(status queues.Status, marker bool) error {
	if marker {
		return failure("clEnqueueMarkerWithWaitList", int32(status), "what was enqueued before has failed")
	}
	return failure("clGetEventInfo", int32(status), "what the event stands for has failed")
}

// Late is nil: each event tells what went wrong with it.
func (driver) Late() error { return nil }

func (r driver) WaitFor(event uintptr) error {
	list := &[1]uintptr{event}
	return r.call(r.library.WaitForEvents, 1, uintptr(unsafe.Pointer(list)))
}

// End knows nothing of events on queues that somebody else made without times.
func (r driver) End(event uintptr) (at uint64, known bool, err error) {
	value, code := info(r.library.GetEventProfilingInfo, event, profilingEnd)
	switch code {
	case success:
		return integer(value), true, nil
	case profilingUnavailable:
		return 0, false, nil
	}
	return 0, false, failure("clGetEventProfilingInfo", code, "")
}

// bridge returns an event of a device's context that is complete when one of another is.
func (r driver) bridge(d *device, after uintptr) (uintptr, error) {
	here, err := r.made(r.library.CreateUserEvent, d.context)
	if err != nil {
		return 0, err
	}
	for _, each := range []uintptr{here, after} { // the goroutine's own references
		if err := r.call(r.library.RetainEvent, each); err != nil {
			return 0, err
		}
	}
	go func() {
		status := int32(complete)
		var failed *backends.DeviceError
		if err := r.WaitFor(after); errors.As(err, &failed) {
			status = int32(failed.Code)
		}
		_ = r.call(r.library.SetUserEventStatus, here, uintptr(uint32(status)))
		r.release(after)
		r.release(here)
	}()
	return here, nil
}
