package pyhamr

import (
	"time"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// NewStream makes a stream, which the caller destroys.
func NewStream(backend string, device int) (uint64, error) {
	made, err := bridge.NewStream(backend, device)
	return uint64(made), err
}

// ResolveStream returns a stream that means the same from every thread.
func ResolveStream(backend string, device int, stream uint64) (uint64, error) {
	resolved, err := bridge.ResolveStream(backend, device, backends.Stream(stream))
	return uint64(resolved), err
}

// StreamDevice returns the device of a stream that somebody else made, -2 if the
// backend knows of no such stream, and -1 if that cannot be told.
//
//hamr:blocking
func StreamDevice(backend string, stream uint64) (int, error) {
	return bridge.StreamDevice(backend, backends.Stream(stream))
}

// StreamIdle reports whether all work on a stream is over.
func StreamIdle(backend string, device int, stream uint64) (bool, error) {
	return bridge.StreamIdle(backend, device, backends.Stream(stream))
}

// WaitStream waits until all work on a stream is over, but at most for some milliseconds, and reports whether it is.
//
//hamr:blocking
func WaitStream(backend string, device int, stream uint64, milliseconds int) (bool, error) {
	return bridge.WaitStream(backend, device, backends.Stream(stream), patience(milliseconds))
}

// StreamWaitEvent makes later work on a stream of a device wait for an event.
func StreamWaitEvent(backend string, device int, stream, event uint64) (int, error) {
	return 0, bridge.StreamWaitEvent(backend, device, backends.Stream(stream), backends.Event(event))
}

// RecordEvent makes an event that stands for the work on a stream so far.
func RecordEvent(backend string, device int, stream uint64) (uint64, error) {
	event, err := bridge.RecordEvent(backend, device, backends.Stream(stream))
	return uint64(event), err
}

// RecordTimedEvent is RecordEvent for an event that keeps the time, for Elapsed.
func RecordTimedEvent(backend string, device int, stream uint64) (uint64, error) {
	event, err := bridge.RecordTimedEvent(backend, device, backends.Stream(stream))
	return uint64(event), err
}

// Elapsed returns how much later, in nanoseconds, the second event was reached than the first.
func Elapsed(backend string, device int, first, second uint64) (int, error) {
	elapsed, err := bridge.Elapsed(backend, device, backends.Event(first), backends.Event(second))
	return int(elapsed.Nanoseconds()), err
}

// EventDone reports whether the work that an event stands for is over.
func EventDone(backend string, device int, event uint64) (bool, error) {
	return bridge.EventDone(backend, device, backends.Event(event))
}

// WaitEvent is WaitStream for an event.
//
//hamr:blocking
func WaitEvent(backend string, device int, event uint64, milliseconds int) (bool, error) {
	return bridge.WaitEvent(backend, device, backends.Event(event), patience(milliseconds))
}

func patience(milliseconds int) time.Duration { return time.Duration(milliseconds) * time.Millisecond }
