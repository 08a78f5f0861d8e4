package gobuffer

import (
	"errors"
	"fmt"
	"syscall"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/order"
	"hamr/gobuffer/internal/shares"
)

// sharer returns the backend that can share memory of allocator a, and the device that is meant.
func (r *Runtime) sharer(a backends.Allocator, device int) (backends.Sharer, int, error) {
	s, device, err := ableOn[backends.Sharer](r, a, device, "its memory cannot be shared by descriptor")
	if err != nil {
		return nil, 0, err
	}
	return s, device, s.Shares(device)
}

// ableOn returns the backend of an allocator as a T, and the device that is meant. lacks says why it is none.
func ableOn[T any](r *Runtime, a backends.Allocator, device int, lacks string) (able T, number int, err error) {
	b, err := r.Backend(a)
	if err != nil {
		return able, 0, err
	}
	if number, err = backing.Device(b, a, device); err != nil {
		return able, 0, err
	}
	able, ok := backends.As[T](b)
	if !ok {
		return able, 0, &backends.UnavailableError{Backend: b.Name(), Reason: lacks}
	}
	return able, number, nil
}

// SharedUnit returns what sizes of shared memory are rounded up to, in bytes, by the backend that serves allocator a.
// The error is a *backends.UnavailableError where the device's memory cannot be shared by descriptor.
func (r *Runtime) SharedUnit(a backends.Allocator, device int) (int, error) {
	s, device, err := r.sharer(a, device)
	if err != nil {
		return 0, err
	}
	return s.SharedUnit(device)
}

// sharedSize is what size bytes are in whole units.
func sharedSize(s backends.Sharer, device, size int) (int, error) {
	unit, err := s.SharedUnit(device)
	if err != nil {
		return 0, err
	}
	if size <= 0 || size > maximumShared {
		return 0, valueError("size", size, "1 … 2**62 bytes")
	}
	return (size + unit - 1) / unit * unit, nil
}

const maximumShared = 1 << 62

// NewShared returns new memory of size bytes, rounded up to SharedUnit's, with one reference, that other processes map
// by a descriptor. It is memory of the backend that serves allocator a, on one of its devices, or of the host. The
// descriptor is closed on exec, and the caller closes it. The memory lasts while anyone has it mapped or has a
// descriptor of it. Host memory is zero; other memory is not initialised. It counts as adopted: it does not grow, and
// the last Release unmaps it when work with it is over.
func (r *Runtime) NewShared(a backends.Allocator, device, size int) (m *Memory, descriptor int, err error) {
	s, device, err := r.sharer(a, device)
	if err != nil {
		return nil, -1, err
	}
	bytes, err := sharedSize(s, device, size)
	if err != nil {
		return nil, -1, err
	}
	b := r.byAllocator[a].backend
	before := r.givenBack()
	at, descriptor, err := s.NewShared(device, bytes)
	if err != nil {
		err = r.takeAgain(before, b, err, func() (failed error) {
			at, descriptor, failed = s.NewShared(device, bytes)
			return failed
		})
	}
	if err != nil {
		return nil, -1, err
	}
	if m, err = r.attachShared(s, at, bytes); err != nil {
		return nil, -1, errors.Join(err, syscall.Close(descriptor))
	}
	return m, descriptor, nil
}

// MapShared maps memory of NewShared, of any process, by its descriptor. The descriptor stays the caller's and may be
// closed at once. a is an allocator of the backend that has made the memory, and device is where it is. size is at most
// what NewShared was asked for. With readOnly a write fails: the device refuses it, and the host gets SIGSEGV. The
// memory counts as adopted: the last Release unmaps it when work with it is over.
func (r *Runtime) MapShared(a backends.Allocator, device, descriptor, size int, readOnly bool) (*Memory, error) {
	return r.mapped(a, device, size, func(s backends.Sharer, device, bytes int) (backends.Region, error) {
		return s.MapShared(descriptor, device, bytes, readOnly)
	})
}

// MapSeparate is MapShared for writing, of which nobody else sees anything, also of a descriptor that may not be
// written to. A page takes memory only when it is written. It is possible where Separate is, as on the host; elsewhere
// the error is errors.ErrUnsupported.
func (r *Runtime) MapSeparate(a backends.Allocator, device, descriptor, size int) (*Memory, error) {
	return r.mapped(a, device, size, func(_ backends.Sharer, device, bytes int) (backends.Region, error) {
		separator, ok := backends.As[backends.Separator](r.byAllocator[a].backend)
		if !ok {
			return backends.Region{}, errors.ErrUnsupported
		}
		return separator.MapSeparate(descriptor, device, bytes)
	})
}

// mapped is memory that a call of a backend's maps, by the device and the bytes in whole units.
func (r *Runtime) mapped(a backends.Allocator, device, size int,
	call func(s backends.Sharer, device, bytes int) (backends.Region, error)) (*Memory, error) {
	s, device, err := r.sharer(a, device)
	if err != nil {
		return nil, err
	}
	bytes, err := sharedSize(s, device, size)
	if err != nil {
		return nil, err
	}
	at, err := call(s, device, bytes)
	if err != nil {
		return nil, err
	}
	return r.attachShared(s, at, bytes)
}

// attachShared makes a mapping of shared memory a Memory, or ends it.
func (r *Runtime) attachShared(s backends.Sharer, at backends.Region, size int) (*Memory, error) {
	end := func() error { return s.UnmapShared(at, size) }
	return r.attach(&shares.Attachment{Region: at, Size: size, End: end, Sharer: s})
}

// attach makes a mapping a Memory, or ends it.
func (r *Runtime) attach(a *shares.Attachment) (*Memory, error) {
	m, err := r.Adopt(a.Region, a.Size, 0, nil)
	if err != nil {
		return nil, errors.Join(err, a.End())
	}
	m.ending = (*unmapped)(a)
	return m, nil
}

func (m *Memory) isShared() bool { return m.attachment() != nil && m.attachment().Sharer != nil }

// Protect makes memory of NewShared and MapShared read-only in this process, after the work with it and other
// libraries' work on its device. It refuses other memory. After an error the memory is as before.
func (m *Memory) Protect() error {
	if err := m.settleShared(); err != nil {
		return err
	}
	return m.attachment().Sharer.ProtectShared(m.region, m.Size())
}

// Separable reports whether Separate is possible.
func (m *Memory) Separable() bool {
	if m.check() != nil || !m.isShared() {
		return false
	}
	_, ok := backends.As[backends.Separator](m.backend)
	return ok
}

// Separate keeps later writes to memory of NewShared and MapShared private to this mapping, once work with it is over.
// After an error the memory is as before. If it is not Separable the error is errors.ErrUnsupported.
func (m *Memory) Separate() error {
	if err := m.settleShared(); err != nil {
		return err
	}
	s, ok := backends.As[backends.Separator](m.backend)
	if !ok {
		return errors.ErrUnsupported
	}
	return s.SeparateShared(m.region, m.Size())
}

// settleShared waits for work with memory that was shared by descriptor, and refuses other memory.
func (m *Memory) settleShared() error {
	if err := m.check(); err != nil {
		return err
	}
	if !m.isShared() {
		return fmt.Errorf("%v is not shared by descriptor: accepted is what NewShared and MapShared return", m)
	}
	//mutate:skip shared memory is made read-only under work
	if err := m.uses.Settle(); err != nil {
		return err
	}
	//mutate:replace shared memory is made read-only under other libraries' work
	//mutate:with _, err := order.SettleDevice(m.backend, m.region.Device) => err, _ := error(nil), order.SettleDevice
	_, err := order.SettleDevice(m.backend, m.region.Device)
	return err
}
