package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// NewEvent makes an event that was not recorded yet, which the caller destroys. A timed one keeps
// the time, for Elapsed.
func NewEvent(backend string, device int, timed bool) (uint64, error) {
	event, err := bridge.NewEvent(backend, device, timed)
	return uint64(event), err
}

// Record makes an event stand for the work on a stream so far.
func Record(backend string, device int, event, stream uint64) (int, error) {
	return 0, bridge.Record(backend, device, backends.Event(event), backends.Stream(stream))
}

// NewLegacyStream makes a stream that takes turns with the device's default stream, which the caller destroys.
func NewLegacyStream(backend string, device int) (uint64, error) {
	made, err := bridge.NewLegacyStream(backend, device)
	return uint64(made), err
}

// SynchronizeDevice blocks until all work on a device is over, other libraries' included.
//
//hamr:blocking
func SynchronizeDevice(backend string, device int) (int, error) {
	return 0, bridge.SynchronizeDevice(backend, device)
}
