package gobuffer

import (
	"fmt"
	"sync"

	"hamr/backends"
	"hamr/gobuffer/internal/extents"
)

// Parts hands out parts of a Memory that somebody else owns: the first that fits, at multiples of extents.Unit bytes
// from where it begins. All methods are safe for concurrent use. On nil and the zero value those that return an error
// return one that is ErrZero, and the others their zero values.
type Parts struct {
	runtime *Runtime
	region  backends.Region // where the parts are
	size    int

	mutex   sync.Mutex
	room    extents.Room
	held    map[backends.Address]bool // parts, and whether a library has them
	library int                       // how many of these a library has
	memory  *Memory                   // nil once nobody needs it
	closed  bool
	given   uint64 // how many parts have come back
	settled uint64 // of these, how many no work uses any more
}

var errNoParts = zeroError("parts", "what NewParts returns")

// NewParts hands out the first size bytes of an array's memory. It keeps the memory until Close, and then as long as a
// library has a part.
func NewParts(of *Array, size int) (*Parts, error) {
	m := of.Memory()
	if err := m.check(); err != nil {
		return nil, err
	}
	if size < 0 || size > of.Layout().NBytes() || size%extents.Unit != 0 {
		return nil, valueError("size", size, fmt.Sprintf("a multiple of %d up to %d bytes", extents.Unit,
			of.Layout().NBytes()))
	}
	at := m.Region()
	at.Address = of.Address()
	return &Parts{runtime: m.runtime, region: at, size: size, room: extents.New(size),
		held: map[backends.Address]bool{}, memory: m.Retain()}, nil
}

func (p *Parts) check() error {
	if p == nil || p.runtime == nil {
		return errNoParts
	}
	return nil
}

// Region says where the parts are.
func (p *Parts) Region() backends.Region {
	if p.check() != nil {
		return backends.Region{Allocator: backends.None, Device: backends.HostDevice}
	}
	return p.region
}

// Take returns where a part of so many bytes begins, or a *backends.OutOfMemoryError. Nothing uses the part any more:
// if work of the device may, since the part was given back shortly before, Take waits for the device. toLibrary says
// that a library has it, which gives it back whenever it likes. Parts that were closed are ErrFreed.
func (p *Parts) Take(size int, toLibrary bool) (backends.Address, error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	if size < 0 {
		return 0, valueError("size", size, "0 bytes or more")
	}
	for {
		at, late, err := p.takeSettled(size, toLibrary)
		if err != nil || late == 0 {
			return at, err
		}
		// Without the lock: who gives a part back must not wait for the device.
		//mutate:skip a part is handed out under the work of who had it before
		if err := p.rest(); err != nil {
			return 0, err
		}
		p.mutex.Lock()
		p.settled = max(p.settled, late)
		p.mutex.Unlock()
	}
}

// takeSettled is Take, unless the part that fits may be in use by work: then late is what settled is to become.
func (p *Parts) takeSettled(size int, toLibrary bool) (at backends.Address, late uint64, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return 0, 0, ErrFreed
	}
	offset, since, ok := p.room.Fits(size)
	if !ok {
		return 0, 0, &backends.OutOfMemoryError{Allocator: p.region.Allocator, Device: p.region.Device, Size: size,
			Limited: true, Detail: fmt.Sprintf("%d of %d bytes are free, %d of them in one piece", p.room.Free(), p.size,
				p.room.Largest())}
	}
	if p.region.Device >= 0 && since > p.settled {
		return 0, p.given, nil
	}
	p.room.Take(offset, size)
	at = p.region.Address + backends.Address(offset)
	p.held[at] = toLibrary
	if toLibrary {
		p.library++
	}
	return at, 0, nil
}

// Give takes a part back from a library, or from whoever else had it. Work may use it still, and Give waits for nobody.
// It returns false where that one has no part that begins there.
func (p *Parts) Give(at backends.Address, byLibrary bool) bool {
	if p.check() != nil {
		return false
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if toLibrary, is := p.held[at]; !is || toLibrary != byLibrary {
		return false
	}
	delete(p.held, at)
	p.given++
	p.room.Give(int(at-p.region.Address), p.given)
	if byLibrary {
		p.library--
		p.drop()
	}
	return true
}

// Free returns how many bytes are free, and how many of them in one piece.
func (p *Parts) Free() (free, largest int) {
	if p.check() != nil {
		return 0, 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.room.Free(), p.room.Largest()
}

// Lent returns how many parts libraries have.
func (p *Parts) Lent() int {
	if p.check() != nil {
		return 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.library
}

// Close ends what Take does, and returns how many parts libraries have. The memory stays until these come back, and the
// work of the device then is over. Again it does nothing.
func (p *Parts) Close() (held int) {
	if p.check() != nil {
		return 0
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	p.drop()
	return p.library
}

// drop ends the use of the memory where nobody needs it. The lock is held.
func (p *Parts) drop() {
	m := p.memory
	if !p.closed || p.library > 0 || m == nil {
		return
	}
	p.memory = nil
	if p.given == p.settled || p.region.Device < 0 {
		_ = m.Release() // what fails is traced
		return
	}
	p.runtime.grants.Aside(func() {
		//mutate:skip memory is unmapped under work on what a library gave back
		_ = p.rest()
		_ = m.Release()
	})
}

// rest waits for all work on the device.
func (p *Parts) rest() error {
	if w, ok := backends.As[backends.DeviceSynchronizer](p.runtime.byAllocator[p.region.Allocator].backend); ok {
		return w.SynchronizeDevice(p.region.Device)
	}
	return nil
}
