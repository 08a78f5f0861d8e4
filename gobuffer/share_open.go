package gobuffer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// mostPools is how many pools of other processes stay imported that nothing is had of.
const mostPools = 8

// openPool is a pool of another process.
type openPool struct {
	pool  *ImportedPool
	users int
	used  uint64 // when last
}

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
	f, err := decodeShare(frame)
	if err != nil {
		return nil, err
	}
	if want := int(descriptorsOfWay[f.way]); len(descriptors) != want {
		return nil, valueError("descriptors", len(descriptors), fmt.Sprintf("the %d that go with the frame", want))
	}
	a, device, err := r.sharedDevice(f)
	if f.way == shareNothing {
		if err != nil {
			a, device = backends.Malloc, backends.HostDevice
		}
		return r.NewArray(f.layout.Type, f.layout.Shape, Options{Allocator: a, Device: device, Transfer: SyncHost})
	}
	if err != nil {
		return nil, err
	}
	m, start, err := r.openMemory(f, a, device, descriptors)
	if err != nil {
		return nil, err
	}
	at := m.region
	return View(m, offset(start, f.first), f.layout, f.layout.Count(), f.readOnly,
		Options{Allocator: at.Allocator, Device: at.Device, Transfer: SyncHost}), nil
}

// openMemory returns a reference to the memory, and where in it the frame's bytes start.
func (r *Runtime) openMemory(f *shareFrame, a backends.Allocator, device int, descriptors []int) (m *Memory, start backends.Address, err error) {
	if f.way == shareDescriptor {
		if m, err = r.MapShared(a, device, descriptors[0], f.total, f.readOnly); err != nil {
			return nil, 0, err
		}
		own, err := duplicate(descriptors[0])
		if err != nil {
			return nil, 0, errors.Join(err, m.Release())
		}
		m.descriptor = &Descriptor{Number: own, Start: m.region.Address, Size: m.Size(), ReadOnly: f.readOnly}
		return m, offset(m.region.Address, f.offset), nil
	}
	if m, start = r.leases.find(f.share); m != nil { // it is this process's own
		return m, start, nil
	}
	lease, err := openLease(descriptors[len(descriptors)-1])
	if err != nil {
		return nil, 0, err
	}
	lane := ownLanes.opens(f.note, lease)
	end := func() error {
		ownLanes.ends(f.note, lease, lane)
		return unix.Close(lease)
	}
	if f.way == sharePool {
		m, err = r.openPooled(f, a, device, descriptors[0])
	} else {
		m, err = r.openAllocation(f, a, device)
	}
	if err != nil {
		return nil, 0, errors.Join(err, end())
	}
	unmap := m.unmap
	m.lease = lease + 1
	m.unmap = func() error {
		err := unmap()
		if refused(err) {
			return err
		}
		return errors.Join(err, end())
	}
	return m, m.region.Address, nil
}

// Lease returns the descriptor by which another process knows that this one has the memory, -1 if none
// need know. A forked child that goes on without its parent closes it.
func (m *Memory) Lease() int {
	if m == nil {
		return -1
	}
	return m.lease - 1
}

func openLease(descriptor int) (int, error) {
	kind, err := unix.GetsockoptInt(descriptor, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return -1, valueError("descriptors", descriptor, "the socket that goes with the frame")
	}
	return duplicate(descriptor)
}

// openPooled imports an allocation of a pool, which is imported once.
func (r *Runtime) openPooled(f *shareFrame, a backends.Allocator, device, descriptor int) (*Memory, error) {
	l := &r.leases
	l.mu.Lock()
	p := l.open[f.pool]
	if p == nil {
		pool, err := r.ImportPool(a, device, descriptor)
		if err != nil {
			l.mu.Unlock()
			return nil, err
		}
		if l.open == nil {
			l.open = map[shareID]*openPool{}
		}
		p = &openPool{pool: pool}
		l.open[f.pool] = p
	}
	p.users++
	l.mu.Unlock()
	m, err := p.pool.Import(f.exported, f.offset, f.size)
	if err != nil {
		l.leave(p)
		return nil, err
	}
	unmap := m.unmap
	m.unmap = func() error {
		err := unmap()
		if !refused(err) {
			l.leave(p)
		}
		return err
	}
	return m, nil
}

// leave ends a use of a pool, and closes the one that was not used for longest if there are too many.
func (l *leases) leave(p *openPool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uses++
	p.users, p.used = p.users-1, l.uses
	var oldest *openPool
	var its shareID
	unused := 0
	for id, each := range l.open {
		if each.users > 0 {
			continue
		}
		unused++
		if oldest == nil || each.used < oldest.used {
			oldest, its = each, id
		}
	}
	if unused > mostPools && oldest.pool.Close() == nil {
		delete(l.open, its)
	}
}

func (r *Runtime) openAllocation(f *shareFrame, a backends.Allocator, device int) (*Memory, error) {
	b, err := r.Backend(a)
	if err != nil {
		return nil, err
	}
	s, ok := backends.As[backends.AllocationSharer](b)
	if !ok {
		return nil, &backends.UnavailableError{Backend: b.Name(), Reason: "it opens no allocations of other processes"}
	}
	base, err := s.OpenAllocation(f.exported, device)
	if err != nil {
		return nil, err
	}
	end := func() error { return s.CloseAllocation(base) }
	found, err := locateBy(b, base.Address)
	if err == nil && found.Size > 0 && f.total > found.Size-int(base.Address-found.Base) {
		err = badFrame("%d bytes of an allocation of %d", f.total, found.Size)
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	at := base
	at.Address = offset(base.Address, f.offset)
	return r.adoptMapping(at, f.size, end)
}

// locateBy asks the one backend whose memory it is, which other backends need not be asked for.
func locateBy(b backends.Backend, at backends.Address) (found backends.Location, err error) {
	if locator, ok := backends.As[backends.Locator](b); ok {
		found, err = locator.Locate(at)
	}
	return found, err
}
