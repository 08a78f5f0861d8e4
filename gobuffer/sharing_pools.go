package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/shares"
)

// poolSharer returns the backend whose pools memory of allocator a is of, and the device that is meant.
func (r *Runtime) poolSharer(a backends.Allocator, device int) (backends.PoolSharer, int, error) {
	return ableOn[backends.PoolSharer](r, a, device, shares.NoPools)
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

// ExportPooled returns the bytes that the memory is imported by where its pool is, and where in what is imported so it
// starts, in bytes. It waits for work on it. The caller keeps the memory until nobody has it imported any more.
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
	pool    *shares.Pool
}

// ImportPool imports a pool of SharedPool, of another process, by its descriptor, which stays the caller's and may be
// closed at once. a is an allocator of the same backend; device is that which the pool is of. The caller closes it.
func (r *Runtime) ImportPool(a backends.Allocator, device, descriptor int) (*ImportedPool, error) {
	_, device, err := r.poolSharer(a, device)
	if err != nil {
		return nil, err
	}
	pool, err := shares.ImportPool(r.byAllocator[a].backend, device, descriptor)
	if err != nil {
		return nil, err
	}
	return &ImportedPool{r, pool}, nil
}

// shared is what is imported, nil if nothing is.
func (p *ImportedPool) shared() *shares.Pool {
	if p == nil {
		return nil
	}
	return p.pool
}

// Import returns size bytes from offset on of what Memory.ExportPooled has returned, with one
// reference, to be read and written in place. Whoever exported it keeps it until the last Release,
// which waits for work with it. It counts as adopted.
func (p *ImportedPool) Import(exported []byte, offset, size int) (*Memory, error) {
	made, err := p.shared().Import(exported, offset, size)
	if err != nil {
		return nil, err
	}
	return p.runtime.attach(made)
}

// Close gives the pool back; memory that was imported lasts until it is released.
func (p *ImportedPool) Close() error { return p.shared().Close() }
