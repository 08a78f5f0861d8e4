package shares

import (
	"errors"
	"fmt"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/failures"
)

// NoPools says what a backend lacks that is no backends.PoolSharer.
const NoPools = "its pools cannot be shared by descriptor"

// Attachment is memory of other processes, or of a descriptor, that is mapped here.
type Attachment struct {
	Region     backends.Region
	Size       int
	End        func() error    // ends the mapping, which is there still after a *backends.NotFreedError
	Sharer     backends.Sharer // whose mapping it is, if it is a descriptor's; else nil
	Descriptor *Descriptor     // of the memory, which ends with it; else nil
	Lease      int             // a descriptor by which another process keeps the memory, plus one, or 0
}

// then has another thing end when the mapping has ended.
func (a *Attachment) then(end func() error) {
	unmap := a.End
	a.End = func() error {
		err := unmap()
		if _, there := errors.AsType[*backends.NotFreedError](err); there {
			return err
		}
		return errors.Join(err, end())
	}
}

// Pool is another process's pool. Its methods are safe for concurrent use.
type Pool struct {
	backend backends.Backend
	sharer  backends.PoolSharer
	pool    uintptr
	closed  atomic.Bool
}

// ImportPool imports a backend's pool of another process by a descriptor, which stays the caller's.
func ImportPool(b backends.Backend, device, descriptor int) (*Pool, error) {
	s, ok := backends.As[backends.PoolSharer](b)
	if !ok {
		return nil, &backends.UnavailableError{Backend: b.Name(), Reason: NoPools}
	}
	pool, err := s.ImportPool(descriptor, device)
	if err != nil {
		return nil, err
	}
	return &Pool{backend: b, sharer: s, pool: pool}, nil
}

// Import maps size bytes from offset on of an allocation that was exported.
func (p *Pool) Import(exported []byte, offset, size int) (*Attachment, error) {
	if p == nil || p.closed.Load() {
		return nil, failures.Zero("pool", "what ImportPool returns, not closed")
	}
	if offset < 0 || size <= 0 {
		return nil, failures.Value("offset and size", fmt.Sprintf("%d and %d", offset, size), "0 … and 1 … bytes")
	}
	base, err := p.sharer.ImportPooled(p.pool, exported)
	if err != nil {
		return nil, err
	}
	end := func() error { return p.sharer.ClosePooled(base) }
	found, err := locate(p.backend, base.Address)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	if found.Size > 0 && size > found.Size-offset {
		return nil, errors.Join(failures.Value("offset and size", fmt.Sprintf("%d and %d", offset, size),
			fmt.Sprintf("what lies in the %d bytes of the allocation", found.Size)), end())
	}
	at := base
	at.Address += backends.Address(offset)
	return &Attachment{Region: at, Size: size, End: end}, nil
}

// Close gives the pool back; memory that was imported lasts until it is released.
func (p *Pool) Close() error {
	if p == nil {
		return failures.Zero("pool", "what ImportPool returns")
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

// locate asks the one backend whose memory it is, which other backends need not be asked for.
func locate(b backends.Backend, at backends.Address) (found backends.Location, err error) {
	if locator, ok := backends.As[backends.Locator](b); ok {
		found, err = locator.Locate(at)
	}
	return found, err
}

// mostPools is how many pools of other processes stay imported that nothing is had of.
const mostPools = 8

type openPool struct {
	pool  *Pool
	users int
	used  uint64 // when last
}

// enter begins a use of a pool, which is imported once.
func (l *Ledger) enter(pool id, b backends.Backend, device, descriptor int) (*openPool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.open[pool]
	if p == nil {
		made, err := ImportPool(b, device, descriptor)
		if err != nil {
			return nil, err
		}
		if l.open == nil {
			l.open = map[id]*openPool{}
		}
		p = &openPool{pool: made}
		l.open[pool] = p
	}
	p.users++
	return p, nil
}

// leave ends a use of a pool, and closes the one that was not used for longest if there are too many.
func (l *Ledger) leave(p *openPool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uses++
	p.users, p.used = p.users-1, l.uses
	var oldest *openPool
	var its id
	unused := 0
	for name, each := range l.open {
		if each.users > 0 {
			continue
		}
		unused++
		if oldest == nil || each.used < oldest.used {
			oldest, its = each, name
		}
	}
	if unused > mostPools && oldest.pool.Close() == nil {
		delete(l.open, its)
	}
}
