package gobuffer

import (
	"sync/atomic"

	"hamr/arrayiface"
	"hamr/backends"
)

// Handle is a place where code in one space can touch a buffer's elements. It
// holds its own reference to the memory, so it outlives the buffer and its
// changes. Its methods are safe for concurrent use.
type Handle struct {
	memory    *Memory
	address   backends.Address
	layout    arrayiface.Layout
	stream    backends.Stream
	temporary bool
	readOnly  bool
	released  atomic.Bool
}

// Access returns a Handle for code in space s on the given device: the memory
// itself if it is reachable there, else a temporary copy. device is ignored by
// the host; below zero it is the calling thread's current one. Changes made to a temporary are not seen by the buffer. The host can
// read at once, whatever the transfer mode; code on a device must use the
// buffer's stream or wait for it. The caller releases the handle.
func (a *Array) Access(s backends.Space, device int) (*Handle, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if s != backends.SpaceHost && device < 0 {
		var err error
		if device, err = a.currentDevice(s); err != nil {
			return nil, err
		}
	}
	if a.inPlace(s, device) {
		if err := a.prepare(s, device); err != nil {
			return nil, err
		}
		if a.memory != nil {
			a.memory.Retain()
		}
		if a.runtime.tracing() {
			a.runtime.tracef("handle for %s in place at %#x", s, a.address)
		}
		return &Handle{memory: a.memory, address: a.address, layout: a.layout, stream: a.options.Stream, readOnly: a.fixed}, nil
	}
	to, err := a.runtime.spaceAllocator(s)
	if err != nil {
		return nil, err
	}
	o := a.optionsAt(to, device)
	if s == backends.SpaceHost {
		// Code on the host knows no streams: it reads at once.
		o.Transfer = Sync
	}
	copied, err := a.copyTo(a.runtime, o, a.layout.Type)
	if err != nil {
		return nil, err
	}
	if a.runtime.tracing() {
		a.runtime.tracef("handle for %s in a temporary at %#x of %d bytes", s, copied.address, copied.layout.NBytes())
	}
	return &Handle{memory: copied.memory, address: copied.address, layout: copied.layout, stream: copied.options.Stream, temporary: true}, nil
}

// prepare is for code in space s that uses the memory in place: the host reads at
// once, and a device must exist.
func (a *Array) prepare(s backends.Space, device int) error {
	if s == backends.SpaceHost {
		return a.all().settle()
	}
	if device == a.options.Device {
		return nil
	}
	b, err := a.runtime.Backend(a.options.Allocator)
	if err == nil {
		_, err = a.runtime.checkDevice(b, a.options.Allocator, device)
	}
	return err
}

// inPlace reports whether code in space s on device can use the memory as it
// is. Device code reaches only the memory of its own device without peer
// access.
func (a *Array) inPlace(s backends.Space, device int) bool {
	if !a.Accessible(s) {
		return false
	}
	kind := a.options.Allocator.Kind()
	return s == backends.SpaceHost || kind == backends.Managed || device == a.options.Device
}

// currentDevice is the calling thread's for code in space s. Where that reaches
// the memory as it is, both runtimes number the devices alike.
func (a *Array) currentDevice(s backends.Space) (int, error) {
	to := a.options.Allocator
	if !a.Accessible(s) {
		var err error
		if to, err = a.runtime.spaceAllocator(s); err != nil {
			return 0, err
		}
	}
	b, err := a.runtime.Backend(to)
	if err != nil {
		return 0, err
	}
	return currentDevice(b)
}

// Release drops the handle's reference. Releasing twice is harmless.
func (h *Handle) Release() error {
	if h.released.Swap(true) || h.memory == nil {
		return nil
	}
	return h.memory.Release()
}

// Stream returns the stream that the elements are used on; a temporary on another
// device cannot have the buffer's.
func (h *Handle) Stream() backends.Stream { return h.stream }

// Temporary reports whether the elements were copied to be reachable.
func (h *Handle) Temporary() bool { return h.temporary }

// ReadOnly reports whether the elements must not be written.
func (h *Handle) ReadOnly() bool { return h.readOnly }

// Address returns where element zero is.
func (h *Handle) Address() backends.Address { return h.address }

// Layout returns type, shape and strides in bytes.
func (h *Handle) Layout() arrayiface.Layout { return h.layout }

// Memory returns the memory without a new reference, or nil.
func (h *Handle) Memory() *Memory { return h.memory }
