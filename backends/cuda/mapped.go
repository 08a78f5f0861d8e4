package cuda

import (
	"errors"
	"sync"
	"unsafe"

	"hamr/backends"
)

// mappedHost is page-locked memory that the kernels of a visited context reach at the host's addresses, as the driver
// has told last.
type mappedHost struct{ low, high backends.Address }

type mapQuery struct {
	attributes [4]int32
	targets    [4]uintptr
	answers    [4]uint64
}

var mapQueries = sync.Pool{New: func() any {
	q := &mapQuery{attributes: [4]int32{2, 3, 11, 12}} // kind, address for kernels, start and size
	for i := range q.answers {
		q.targets[i] = uintptr(unsafe.Pointer(&q.answers[i]))
	}
	return q
}}

// reach returns nil if kernels of the context reach page-locked memory, else errors.ErrUnsupported or the driver's
// error. Whoever locked it may have done so for another context, or have ended it since the core was told of it: a
// kernel that reads it then ends all work of its context.
func (m *mappedHost) reach(v *visit, at backends.Address, size int) (err error) {
	end := at + backends.Address(size)
	if at < m.low || end > m.high {
		m.low, m.high, err = v.mappedAt(at)
		if err == nil && m.low == m.high && m.low != 0 {
			if m.low, _, err = v.mappedAt(end - 1); m.low != 0 {
				m.low, m.high = at, end
			}
		}
	}
	//mutate:never a kernel reads host memory that its device does not reach
	if err == nil && (at < m.low || end > m.high) {
		err = errors.ErrUnsupported
	}
	return err
}

// ReadsInOrder implements backends.HostReader. Memory that somebody has registered for one context is ordinary memory
// to the copies of others.
func (b *copyFloor) ReadsInOrder(at backends.Region, size, device int, stream backends.Stream) (bool, error) {
	v, err := b.enter(device, stream)
	if err != nil {
		return false, err
	}
	defer v.leave()
	err = new(mappedHost).reach(v, at.Address, size)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// mappedAt is the range that an address is in: from zero to zero where it is not mapped, and empty at the address where
// the driver does not tell how far it reaches.
func (v *visit) mappedAt(at backends.Address) (low, high backends.Address, err error) {
	b := v.b
	if !b.hasContexts() {
		found, err := b.locate(at)
		if err != nil || found.Allocator.Kind() != backends.Pinned {
			return 0, 0, err
		}
		if found.Size == 0 {
			return at, at, nil
		}
		return found.Base, found.Base + backends.Address(found.Size), nil
	}
	q := mapQueries.Get().(*mapQuery)
	defer mapQueries.Put(q)
	q.answers = [4]uint64{}
	err = b.call(b.driver.PointerGetAttributes, uintptr(len(q.answers)), uintptr(unsafe.Pointer(&q.attributes)),
		uintptr(unsafe.Pointer(&q.targets)), uintptr(at))
	if err != nil || int32(q.answers[0]) != memoryTypeHost || q.answers[1] != uint64(at) {
		return 0, 0, err
	}
	if q.answers[3] == 0 {
		return at, at, nil
	}
	return backends.Address(q.answers[2]), backends.Address(q.answers[2] + q.answers[3]), nil
}

// reachEnds is reach of what a kernel of the device converts or writes, where that is in page-locked memory. An
// address of zero stands for any.
func (b *copyFloor) reachEnds(device int, ends ...backends.Strided) error {
	for _, s := range ends {
		if s.Allocator.Kind() != backends.Pinned || s.Address == 0 {
			continue
		}
		low, high := 0, s.Element.Size
		for i, n := range s.Shape {
			low, high = low+min(0, (n-1)*s.Strides[i]), high+max(0, (n-1)*s.Strides[i])
		}
		v, err := b.enter(device, defaultStream)
		if err != nil {
			return err
		}
		err = new(mappedHost).reach(v, backends.Address(int(s.Address)+low), high-low)
		v.leave()
		if err != nil {
			return err
		}
	}
	return nil
}
