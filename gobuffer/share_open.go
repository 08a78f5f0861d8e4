package gobuffer

import (
	"errors"

	"hamr/backends"
	"hamr/gobuffer/internal/shares"
)

// OpenShared returns the elements that a frame and its descriptors, of Array.Share in whatever process, are of:
// in the same memory, for reading and writing unless they were shared for reading only. The descriptors stay
// the caller's, and may be closed at once. Work on the elements is what their maker has waited for; later work
// of either process the other one is to be told of, and so are changes, where it has asked for Cached.
//
// The memory lasts until it is released here, whatever becomes of its maker, with one exception: what
// CUDA's runtime has allocated, as hamr's allocator cuda does, is its process's, and CUDA promises nothing
// of it once that has ended. The error is an *ArgumentError where the frame or the descriptors are not
// what Share has made, a *backends.UnavailableError where this process does not have the device.
func (r *Runtime) OpenShared(frame []byte, descriptors []int) (*Array, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	f, err := shares.Decode(frame, len(descriptors))
	if err != nil {
		return nil, err
	}
	options := Options{Allocator: f.Allocator, Device: backends.HostDevice, Transfer: SyncHost}
	if f.OnHost() {
		options.Allocator = backends.Shared
	}
	b, err := r.Backend(options.Allocator)
	if err == nil {
		options.Device, err = r.shares.Device(f, b)
	}
	if f.Empty() {
		if f.OnHost() || err != nil {
			options.Allocator, options.Device = backends.Malloc, backends.HostDevice
		}
		return r.NewArray(f.Layout.Type, f.Layout.Shape, options)
	}
	if err != nil {
		return nil, err
	}
	m, start, err := r.openMemory(f, b, options, descriptors)
	if err != nil {
		return nil, err
	}
	options.Allocator, options.Device = m.region.Allocator, m.region.Device
	return View(m, offset(start, f.First), f.Layout, f.Layout.Count(), f.ReadOnly, options), nil
}

// openMemory returns a reference to the memory, and where in it the frame's bytes start.
func (r *Runtime) openMemory(
	f *shares.Frame, b backends.Backend, at Options, descriptors []int,
) (m *Memory, start backends.Address, err error) {
	if f.Mapped() {
		if m, err = r.openMapped(f, at, descriptors[0]); err != nil {
			return nil, 0, err
		}
		return m, offset(m.region.Address, f.Offset), nil
	}
	if found, start := r.shares.Find(f); found != nil { // it is this process's own
		return found.(reference).Memory, start, nil
	}
	made, err := r.shares.Borrow(f, b, at.Device, descriptors)
	if err != nil {
		return nil, 0, err
	}
	m, err = r.attach(made)
	return m, made.Region.Address, err
}

// openMapped maps memory that a descriptor is of, and has another descriptor of it to share it further.
func (r *Runtime) openMapped(f *shares.Frame, at Options, descriptor int) (*Memory, error) {
	m, err := r.MapShared(at.Allocator, at.Device, descriptor, f.Total, f.ReadOnly)
	if err != nil {
		return nil, err
	}
	own, err := shares.Duplicate(descriptor)
	if err != nil {
		return nil, errors.Join(err, m.Release())
	}
	start := m.region.Address
	m.attachment().Descriptor = &shares.Descriptor{Number: own, Start: start, Size: m.Size(), ReadOnly: f.ReadOnly}
	return m, nil
}

// Lease returns the descriptor by which another process knows that this one has the memory, -1 if none
// need know. A forked child that goes on without its parent closes it.
func (m *Memory) Lease() int {
	if m == nil || m.attachment() == nil {
		return -1
	}
	return m.attachment().Lease - 1
}
