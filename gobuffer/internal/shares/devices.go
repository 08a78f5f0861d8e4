package shares

import (
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
)

// devices remembers devices by number and by UUID: each backend is asked once.
type devices struct {
	known sync.Map // UUIDs by deviceKey, and numbers by identityKey
	last  atomic.Pointer[knownDevice]
}

type (
	deviceKey struct {
		backend string
		device  int
	}
	identityKey struct {
		backend string
		id      backends.UUID
	}
)

// knownDevice is the device that was asked for last.
type knownDevice struct {
	allocator backends.Allocator
	id        backends.UUID
	device    int
}

// DeviceID is the UUID of a backend's device, zero for backends.HostDevice.
func (d *devices) DeviceID(b backends.Backend, device int) (id backends.UUID, err error) {
	if device < 0 {
		return id, nil
	}
	key := deviceKey{b.Name(), device}
	if found, ok := d.known.Load(key); ok {
		return found.(backends.UUID), nil
	}
	id, known, err := backing.Identity(b, device)
	switch {
	case err != nil:
		return id, err
	case !known:
		return id, Unavailable("its runtime cannot tell which device others know as the same")
	}
	d.known.Store(key, id)
	return id, nil
}

// Device is the number that a frame's device has here, among those of its backend.
func (d *devices) Device(f *Frame, b backends.Backend) (int, error) {
	if f.Device == (backends.UUID{}) {
		return backends.HostDevice, nil
	}
	if last := d.last.Load(); last != nil && last.allocator == f.Allocator && last.id == f.Device {
		return last.device, nil
	}
	device, err := d.find(b, f.Device)
	if err == nil {
		d.last.Store(&knownDevice{f.Allocator, f.Device, device})
	}
	return device, err
}

// find is the device of a backend that has the UUID.
func (d *devices) find(b backends.Backend, id backends.UUID) (int, error) {
	key := identityKey{b.Name(), id}
	if found, ok := d.known.Load(key); ok {
		return found.(int), nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, err
	}
	for device := range count {
		found, known, err := backing.Identity(b, device)
		if err != nil {
			return 0, err
		}
		if known && found == id {
			d.known.Store(key, device)
			return device, nil
		}
	}
	return 0, &backends.UnavailableError{Backend: b.Name(), Reason: "this process has no device " + id.String()}
}
