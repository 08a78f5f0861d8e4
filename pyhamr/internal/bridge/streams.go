package bridge

import (
	"errors"

	"hamr/backends"
)

// NewStream makes a stream, which the caller destroys.
func NewStream(backend string, device int) (backends.Stream, error) {
	return with(backend, device, func(s backends.Streams, device int) (backends.Stream, error) {
		return s.NewStream(device)
	})
}

// DestroyStream ends a stream; its work still runs.
func DestroyStream(backend string, device int, stream backends.Stream) error {
	return do(backend, device, func(s backends.Streams, device int) error { return s.DestroyStream(device, stream) })
}

// ResolveStream returns a stream that means the same from every thread.
func ResolveStream(backend string, device int, stream backends.Stream) (backends.Stream, error) {
	return with(backend, device, func(s backends.Streams, device int) (backends.Stream, error) {
		return s.Resolve(device, stream)
	})
}

// What StreamDevice returns in place of a device.
const (
	unknownDevice = -1
	noStream      = -2
)

// StreamDevice returns the device of a stream that somebody else made, -2 if the
// backend knows of no such stream, and -1 if that cannot be told: there is no runtime
// here that has streams, or it is in trouble.
func StreamDevice(backend string, stream backends.Stream) (device int, err error) {
	defer Guard(&err)
	b, err := Runtime.Named(backend)
	s, ok := backends.As[backends.Streams](b)
	if err != nil || !ok {
		return unknownDevice, nil
	}
	device, err = s.StreamDevice(stream)
	switch {
	case err == nil:
		return device, nil
	case errors.Is(err, backends.ErrNoStream):
		return noStream, nil
	}
	return unknownDevice, nil
}

// StreamIdle reports whether all work on a stream is over.
func StreamIdle(backend string, device int, stream backends.Stream) (bool, error) {
	return with(backend, device, func(s backends.Streams, device int) (bool, error) { return s.Idle(device, stream) })
}

// StreamWaitEvent makes later work on a stream of a device wait for an event.
func StreamWaitEvent(backend string, device int, stream backends.Stream, event backends.Event) error {
	return do(backend, device, func(s backends.Streams, device int) error { return s.Wait(device, stream, event) })
}

// RecordEvent makes an event that stands for the work on a stream so far.
func RecordEvent(backend string, device int, stream backends.Stream) (backends.Event, error) {
	return with(backend, device, func(s backends.Streams, device int) (backends.Event, error) {
		e, err := s.NewEvent(device)
		if err != nil {
			return 0, err
		}
		if err := s.Record(device, e, stream); err != nil {
			_ = s.DestroyEvent(device, e)
			return 0, err
		}
		return e, nil
	})
}

// DestroyEvent ends an event.
func DestroyEvent(backend string, device int, event backends.Event) error {
	return do(backend, device, func(s backends.Streams, device int) error { return s.DestroyEvent(device, event) })
}

// EventDone reports whether the work that an event stands for is over.
func EventDone(backend string, device int, event backends.Event) (bool, error) {
	return with(backend, device, func(s backends.Streams, device int) (bool, error) { return s.Done(device, event) })
}
