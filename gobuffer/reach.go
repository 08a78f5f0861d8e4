package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/order"
)

// Reaches reports whether code in space s on a device uses the memory in place. device is numbered as that space's
// runtime does; below zero any device will do, and the host has none. Where the allocator does not say, the backends
// are asked. A runtime that cannot be asked reaches nothing.
func (a *Array) Reaches(s backends.Space, device int) (bool, error) {
	if err := a.check(); err != nil {
		return false, err
	}
	device = max(device, backing.AnyDevice)
	if !a.options.Allocator.SharedWith(s) || (a.memory != nil && a.memory.Mapped()) {
		return a.Accessible(s) && (device == backing.AnyDevice || a.inPlace(s, device)), nil
	}
	said, err := a.runtime.backends.ReachedBy(a.home(), s, device)
	return said.Is, err
}

// inPlace reports whether code in space s on device can use the memory as it is. Without peer access device code
// reaches only the memory of its own device.
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

// shares is inPlace for another runtime's code, where a's allocator is SharedWith it.
func (a *Array) shares(s backends.Space, device int) (backing.Reached, error) {
	said, err := a.runtime.backends.ReachedBy(a.home(), s, device)
	if err == nil && !said.Is && a.runtime.tracing() {
		a.runtime.tracef("%s memory of device %d cannot be used by %s in place: %s", a.options.Allocator, a.options.Device, s,
			said.Why)
	}
	return said, err
}

// currentDevice is the calling thread's for code in space s.
func (a *Array) currentDevice(s backends.Space) (int, error) {
	own := a.options.Allocator
	if own.ReachableFrom(s) && s != backends.SpaceHost {
		return a.runtime.backends.CurrentDeviceOf(own)
	}
	list, err := a.runtime.temporariesIn(s)
	if err != nil {
		return 0, err
	}
	device, err := a.runtime.backends.CurrentDeviceOf(list[0])
	if errors.Is(err, backends.ErrUnavailable) && own.SharedWith(s) {
		return a.runtime.backends.CurrentDeviceOf(own)
	}
	return device, err
}

// orderFor makes another runtime's code that uses a handle's elements run after all work on them. Later work of hamr's
// runs after that runtime's default stream. The two runtimes know nothing of each other's streams, so pending work is
// waited for.
func (a *Array) orderFor(b backends.Backend, h *Handle, device int) error {
	if err := errors.Join(a.memory.there(), a.all().settle()); err != nil {
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
		is, err := a.Reaches(s, backing.AnyDevice)
		return is && err == nil
	}
	return a.options.Allocator.ReachableFrom(s)
}
