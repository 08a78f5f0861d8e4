package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// Reaches reports whether code in space s on a device, as that runtime numbers them, uses the memory
// in place: the backends are asked where the allocator does not say. Below zero any device will do;
// the host has none. A runtime that cannot be asked reaches nothing.
func (a *Array) Reaches(s backends.Space, device int) (bool, error) {
	if err := a.check(); err != nil {
		return false, err
	}
	device = max(device, anyDevice)
	if !a.options.Allocator.SharedWith(s) || (a.memory != nil && a.memory.Mapped()) {
		return a.Accessible(s) && (device == anyDevice || a.inPlace(s, device)), nil
	}
	said, err := a.runtime.reachedBy(a.home(), s, device)
	return said.is, err
}

// inPlace reports whether code in space s on device can use the memory as it
// is. Device code reaches only the memory of its own device without peer
// access.
func (a *Array) inPlace(s backends.Space, device int) bool {
	switch {
	case a.memory != nil && a.memory.Mapped():
		return s == backends.SpaceHost
	case !a.options.Allocator.ReachableFrom(s):
		return false
	case s == backends.SpaceHost || device == a.options.Device:
		return true
	case !a.options.Allocator.EveryDevice():
		return false
	}
	if a.memory == nil {
		return true
	}
	able, ok := backends.As[backends.Reacher](a.memory.backend)
	if !ok {
		return true
	}
	if count, err := a.memory.backend.DeviceCount(); err != nil || device >= count {
		return true // prepare says what is wrong
	}
	is, err := able.Reaches(device, a.memory.region)
	return is && err == nil
}

// home is where the elements are, or would be if there were any.
func (a *Array) home() backends.Region {
	return backends.Region{Address: a.address, Allocator: a.options.Allocator, Device: a.options.Device}
}

// shares is inPlace for code of another runtime's that a's allocator is SharedWith.
func (a *Array) shares(s backends.Space, device int) (reached, error) {
	said, err := a.runtime.reachedBy(a.home(), s, device)
	if err == nil && !said.is && a.runtime.tracing() {
		a.runtime.tracef("%s memory of device %d cannot be used by %s in place: %s", a.options.Allocator, a.options.Device, s, said.why)
	}
	return said, err
}

// currentDevice is the calling thread's for code in space s.
func (a *Array) currentDevice(s backends.Space) (int, error) {
	own := a.options.Allocator
	if own.ReachableFrom(s) && s != backends.SpaceHost {
		return a.runtime.currentDeviceOf(own)
	}
	list, err := a.runtime.temporariesIn(s)
	if err != nil {
		return 0, err
	}
	device, err := a.runtime.currentDeviceOf(list[0])
	if errors.Is(err, backends.ErrUnavailable) && own.SharedWith(s) {
		return a.runtime.currentDeviceOf(own)
	}
	return device, err
}

func (r *Runtime) currentDeviceOf(a backends.Allocator) (int, error) {
	b, err := r.Backend(a)
	if err != nil {
		return 0, err
	}
	return currentDevice(b)
}

// orderFor makes what code of another runtime's does with a handle's elements run after all work on
// them, and what hamr does with them later run after what that has on its default stream. The
// two know nothing of each other's streams, so what is pending is waited for.
func (a *Array) orderFor(b backends.Backend, h *Handle, device int) error {
	if err := errors.Join(a.memory.notMapped(), a.all().settle()); err != nil {
		return err
	}
	h.stream = 0
	streams, ok := backends.As[backends.Streams](b)
	if !ok {
		return nil
	}
	s, err := streams.Resolve(device, 0)
	if err != nil {
		return err
	}
	h.elsewhere = &order.Work{Backend: b, Streams: streams, Device: device, Stream: s, Foreign: true}
	if a.memory == nil {
		return nil
	}
	a.memory.uses.AddGuest(h.elsewhere)
	marked := *h.elsewhere
	return a.memory.mark(&marked, nil)
}

// Accessible reports whether code in space s reaches the elements in place: on some device,
// where that is another runtime's than the memory. See Reaches.
func (a *Array) Accessible(s backends.Space) bool {
	if !a.live() {
		return false
	}
	if a.memory != nil && a.memory.Mapped() {
		return s == backends.SpaceHost
	}
	if a.options.Allocator.SharedWith(s) {
		is, err := a.Reaches(s, anyDevice)
		return is && err == nil
	}
	return a.options.Allocator.ReachableFrom(s)
}
