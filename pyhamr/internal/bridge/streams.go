package bridge

import (
	"errors"
	"time"

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

// StreamDevice returns the device of a stream that somebody else made, -2 if the backend knows of no such stream, and
// -1 if that cannot be told: there is no runtime here that has streams, or it is in trouble.
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
		return recorded(s, device, e, stream)
	})
}

// recorded takes over a new event.
func recorded(s backends.Streams, device int, e backends.Event, stream backends.Stream) (backends.Event, error) {
	if err := s.Record(device, e, stream); err != nil {
		_ = s.DestroyEvent(device, e)
		return 0, err
	}
	return e, nil
}

// RecordTimedEvent is RecordEvent for an event that keeps the time, for Elapsed.
func RecordTimedEvent(backend string, device int, stream backends.Stream) (backends.Event, error) {
	return with(backend, device, func(s backends.Streams, device int) (backends.Event, error) {
		return with(backend, device, func(t backends.Timer, device int) (backends.Event, error) {
			e, err := t.NewTimedEvent(device)
			if err != nil {
				return 0, err
			}
			return recorded(s, device, e, stream)
		})
	})
}

// Elapsed returns how much later an event was reached than another one of the device.
func Elapsed(backend string, device int, from, to backends.Event) (time.Duration, error) {
	return with(backend, device, func(t backends.Timer, device int) (time.Duration, error) {
		return t.Elapsed(device, from, to)
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
