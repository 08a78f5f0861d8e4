package shares

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// Ledger is what one runtime lends to other processes, and what it has of theirs. The zero value is ready for use.
// Its methods are safe for concurrent use.
type Ledger struct {
	devices
	leases  leases
	mu      sync.Mutex
	offered map[backends.Region]*offeredPool // pools of this process, by allocator and device
	open    map[id]*openPool                 // pools of others
	uses    uint64
}

// Source is memory that is to be lent.
type Source struct {
	Reference
	Backend backends.Backend
	Region  backends.Region
	Owned   bool // the backend has allocated it
}

// Describe has a frame say that its elements start so many bytes into a descriptor's memory, of a backend's region. It
// takes the descriptor over, and returns those that go with the frame.
func (l *Ledger) Describe(
	f *Frame, b backends.Backend, at backends.Region, d *Descriptor, start int,
) (descriptors []int, err error) {
	descriptor := d.Number
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(descriptor))
		}
	}()
	f.way, f.Allocator, f.Total, f.Offset = wayDescriptor, at.Allocator, d.Size, start
	f.ReadOnly = f.ReadOnly || d.ReadOnly
	if f.Device, err = l.DeviceID(b, at.Device); err != nil {
		return nil, err
	}
	if f.ReadOnly && at.Device == backends.HostDevice {
		readable, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", descriptor), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("descriptor %d for reading only: %w", descriptor, err)
		}
		err = unix.Close(descriptor)
		if descriptor = readable; err != nil {
			return nil, err
		}
	}
	return []int{descriptor}, nil
}

// Lend has a frame say where the elements are that start at an address of memory without a descriptor. It keeps the
// memory until all who have the descriptors that it returns are gone. The error is a *backends.UnavailableError
// where other processes cannot have the memory.
func (l *Ledger) Lend(f *Frame, m Source, start backends.Address) (descriptors []int, err error) {
	if pools, ok := backends.As[backends.PoolSharer](m.Backend); ok && m.Owned && m.Region.Allocator.Ordered() {
		descriptors, err = l.ofPool(f, pools, m, start)
	} else {
		err = l.ofAllocation(f, m, start)
	}
	if err != nil {
		return nil, err
	}
	var lease int
	if lease, f.share, f.note, err = l.leases.lend(m.Reference, start); err != nil {
		return nil, errors.Join(err, Close(descriptors))
	}
	return append(descriptors, lease), nil
}

// ofPool is for memory that the pool's backend has allocated: it starts where that said.
func (l *Ledger) ofPool(
	f *Frame, s backends.PoolSharer, m Source, start backends.Address,
) (descriptors []int, err error) {
	p, err := l.pool(s, m)
	if err != nil {
		return nil, err
	}
	if f.exported, err = s.ExportAllocated(m.Region); err != nil {
		return nil, err
	}
	f.way, f.Allocator, f.Device, f.pool = wayPool, m.Region.Allocator, p.device, p.id
	f.Offset = int(start - m.Region.Address)
	f.Total = f.Offset + f.Size
	descriptor, err := Duplicate(p.descriptor)
	return []int{descriptor}, err
}

func (l *Ledger) ofAllocation(f *Frame, m Source, start backends.Address) (err error) {
	s, able := backends.As[backends.AllocationSharer](m.Backend)
	if !able {
		return Unavailable("it is none that others can map or import")
	}
	if f.Device, err = l.DeviceID(m.Backend, m.Region.Device); err != nil {
		return err
	}
	at := m.Region
	at.Address = start
	f.exported, f.Offset, err = s.ExportAllocation(at)
	f.way, f.Allocator, f.Total = wayAllocation, m.Region.Allocator, f.Offset+f.Size
	return err
}

type offeredPool struct {
	id         id
	device     backends.UUID
	descriptor int
}

// pool returns the pool that memory is of, whose descriptor stays the ledger's.
func (l *Ledger) pool(s backends.PoolSharer, m Source) (*offeredPool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := m.Region
	at.Address = 0
	if p := l.offered[at]; p != nil {
		return p, nil
	}
	device, err := l.DeviceID(m.Backend, at.Device)
	if err != nil {
		return nil, err
	}
	descriptor, err := s.SharedPool(at.Allocator, at.Device)
	if err != nil {
		return nil, err
	}
	if l.offered == nil {
		l.offered = map[backends.Region]*offeredPool{}
	}
	p := &offeredPool{newID(), device, descriptor}
	l.offered[at] = p
	return p, nil
}
