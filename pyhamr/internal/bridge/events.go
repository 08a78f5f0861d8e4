package bridge

import "hamr/backends"

// NewEvent makes an event that was not recorded yet, which the caller destroys; a timed one keeps
// the time, for Elapsed.
func NewEvent(backend string, device int, timed bool) (backends.Event, error) {
	if timed {
		return with(backend, device, func(t backends.Timer, device int) (backends.Event, error) {
			return t.NewTimedEvent(device)
		})
	}
	return with(backend, device, func(s backends.Streams, device int) (backends.Event, error) {
		return s.NewEvent(device)
	})
}

// Record makes an event stand for the work on a stream so far, and for nothing that it stood for before.
func Record(backend string, device int, event backends.Event, stream backends.Stream) error {
	return do(backend, device, func(s backends.Streams, device int) error { return s.Record(device, event, stream) })
}

// NewLegacyStream makes a stream that takes turns with the device's default stream, which the
// caller destroys. Where the default stream waits for no other it is one as NewStream's.
func NewLegacyStream(backend string, device int) (backends.Stream, error) {
	return with(backend, device, func(s backends.Streams, number int) (backends.Stream, error) {
		if l, ok := s.(backends.LegacyStreams); ok {
			return l.NewLegacyStream(number)
		}
		return s.NewStream(number)
	})
}

// SynchronizeDevice blocks until all work on a device is over, other libraries' included.
func SynchronizeDevice(backend string, device int) error {
	return do(backend, device, func(s backends.DeviceSynchronizer, device int) error {
		return s.SynchronizeDevice(device)
	})
}
