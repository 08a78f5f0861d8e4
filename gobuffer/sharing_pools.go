package gobuffer

import (
	"errors"
	"fmt"
	"sync/atomic"

	"hamr/backends"
)

// poolSharer returns the backend whose pools memory of allocator a is of, and the device that is meant.
func (r *Runtime) poolSharer(a backends.Allocator, device int) (backends.PoolSharer, int, error) {
	return ableOn[backends.PoolSharer](r, a, device, "its pools cannot be shared by descriptor")
}

// SharedPool returns a descriptor of the pool that memory of allocator a on a device is of, by which
// another process imports it once, and then allocations of Memory.ExportPooled. It is closed on exec
// and is the caller's to close. The error is a *backends.UnavailableError where the pool cannot be shared.
func (r *Runtime) SharedPool(a backends.Allocator, device int) (descriptor int, err error) {
	s, device, err := r.poolSharer(a, device)
	if err != nil {
		return -1, err
	}
	return s.SharedPool(a, device)
}

// ExportPooled returns the bytes that the memory is imported by where its pool is, and where in
// what is imported so it starts, in bytes. It waits for work on it. The caller keeps the memory until nobody has it
// imported any more.
func (m *Memory) ExportPooled() (exported []byte, offset int, err error) {
	if err := m.check(); err != nil {
		return nil, 0, err
	}
	s, _, err := m.runtime.poolSharer(m.region.Allocator, m.region.Device)
	if err != nil {
		return nil, 0, err
	}
	if err := m.uses.Settle(); err != nil {
		return nil, 0, err
	}
	return s.ExportPooled(m.region)
}

// ImportedPool is another process's pool. Its methods are safe for concurrent use.
type ImportedPool struct {
	runtime *Runtime
	backend backends.Backend
	sharer  backends.PoolSharer
	pool    uintptr
	closed  atomic.Bool
}

// ImportPool imports a pool of SharedPool, of another process, by its descriptor, which stays the
// caller's and may be closed at once. a is an allocator of the same backend; device is that which the
// pool is of. The caller closes it.
func (r *Runtime) ImportPool(a backends.Allocator, device, descriptor int) (*ImportedPool, error) {
	s, device, err := r.poolSharer(a, device)
	if err != nil {
		return nil, err
	}
	pool, err := s.ImportPool(descriptor, device)
	if err != nil {
		return nil, err
	}
	return &ImportedPool{runtime: r, backend: r.byAllocator[a].backend, sharer: s, pool: pool}, nil
}

// Import returns size bytes from offset on of what Memory.ExportPooled has returned, with one
// reference, to be read and written in place. Whoever exported it keeps it until the last Release,
// which waits for work with it. It counts as adopted.
func (p *ImportedPool) Import(exported []byte, offset, size int) (*Memory, error) {
	if p == nil || p.runtime == nil || p.closed.Load() {
		return nil, zeroError("pool", "what ImportPool returns, not closed")
	}
	if offset < 0 || size <= 0 {
		return nil, valueError("offset and size", fmt.Sprintf("%d and %d", offset, size), "0 … and 1 … bytes")
	}
	base, err := p.sharer.ImportPooled(p.pool, exported)
	if err != nil {
		return nil, err
	}
	end := func() error { return p.sharer.ClosePooled(base) }
	found, err := locateBy(p.backend, base.Address)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	if found.Size > 0 && size > found.Size-offset {
		return nil, errors.Join(valueError("offset and size", fmt.Sprintf("%d and %d", offset, size),
			fmt.Sprintf("what lies in the %d bytes of the allocation", found.Size)), end())
	}
	at := base
	at.Address += backends.Address(offset)
	return p.runtime.adoptMapping(at, size, end)
}

// Close gives the pool back; memory that was imported lasts until it is released.
func (p *ImportedPool) Close() error {
	if p == nil || p.runtime == nil {
		return zeroError("pool", "what ImportPool returns")
	}
	if p.closed.Swap(true) {
		return nil
	}
	err := p.sharer.ClosePool(p.pool)
	if err != nil {
		p.closed.Store(false)
	}
	return err
}
