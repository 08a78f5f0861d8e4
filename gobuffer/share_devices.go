package gobuffer

import (
	"hamr/backends"
)

// deviceKey is a device by number, and identityKey by its UUID: they are asked for once.
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

// knownDevice is a device of the backend that an allocator is of.
type knownDevice struct {
	allocator backends.Allocator
	id        backends.UUID
	device    int
}

// deviceID is a device's UUID, zero for the host.
func (r *Runtime) deviceID(at backends.Region) (id backends.UUID, err error) {
	if at.Device < 0 {
		return id, nil
	}
	b, err := r.Backend(at.Allocator)
	if err != nil {
		return id, err
	}
	key := deviceKey{b.Name(), at.Device}
	if found, ok := r.leases.devices.Load(key); ok {
		return found.(backends.UUID), nil
	}
	id, known, err := r.identity(b.Name(), at.Device)
	switch {
	case err != nil:
		return id, err
	case !known:
		return id, cannotShare("its runtime cannot tell which device others know as the same")
	}
	r.leases.devices.Store(key, id)
	return id, nil
}

// sharedDevice finds a frame's device among those that this process has.
func (r *Runtime) sharedDevice(f *shareFrame) (backends.Allocator, int, error) {
	if f.device == (backends.UUID{}) {
		if f.way == shareNothing {
			return backends.Malloc, backends.HostDevice, nil
		}
		return backends.Shared, backends.HostDevice, nil
	}
	if last := r.leases.last.Load(); last != nil && last.allocator == f.allocator && last.id == f.device {
		return f.allocator, last.device, nil
	}
	b, err := r.Backend(f.allocator)
	if err != nil {
		return 0, 0, err
	}
	device, err := r.deviceOf(b, f.device)
	if err == nil {
		r.leases.last.Store(&knownDevice{f.allocator, f.device, device})
	}
	return f.allocator, device, err
}

// deviceOf is the device of a backend that has the UUID.
func (r *Runtime) deviceOf(b backends.Backend, id backends.UUID) (int, error) {
	key := identityKey{b.Name(), id}
	if found, ok := r.leases.devices.Load(key); ok {
		return found.(int), nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, err
	}
	for device := range count {
		found, known, err := r.identity(b.Name(), device)
		if err != nil {
			return 0, err
		}
		if known && found == id {
			r.leases.devices.Store(key, device)
			return device, nil
		}
	}
	return 0, &backends.UnavailableError{Backend: b.Name(), Reason: "this process has no device " + id.String()}
}
