package gobuffer

import (
	"errors"

	"hamr/backends"
)

// ErrMapped is returned where code on a device would use memory that the host has mapped.
var ErrMapped = errors.New("the host has the memory mapped for a handle, " +
	"and a device cannot use it until that and all that shares it are released")

// maps reports whether enter must find out who uses p's memory now.
func (p *piece) maps() bool { return p.memory.mappable() && !p.entered }

func stay() error { return nil }

// enter keeps p where it is until leave is called: with the device, or with the host if a handle has it mapped. write
// says that elements are to be written. It never maps the memory itself, since that would take all of it from the
// device, where others may use elements outside p.
func (p piece) enter(write bool) (entered piece, leave func() error, err error) {
	if !p.maps() {
		return p, stay, nil
	}
	x := p.memory.mapping
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.host.Load() == nil {
		x.enqueuing++
		p.entered = true
		return p, x.leave, nil
	}
	host, err := p.toHost(write)
	if err != nil {
		return piece{}, nil, err
	}
	return host, host.memory.Release, nil
}

func (x *mapping) leave() error {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.enqueuing--; x.enqueuing == 0 {
		x.left.Broadcast()
	}
	return nil
}

// toHost returns p's elements in the host's view of the memory, with a reference to it. The caller holds the mutex.
func (p piece) toHost(write bool) (host piece, err error) {
	m, x := p.memory, p.memory.mapping
	//mutate:never memory is mapped while others enqueue work on it
	for x.host.Load() == nil && x.enqueuing > 0 {
		x.left.Wait()
	}
	//mutate:skip memory is mapped under work
	if err := p.settle(); err != nil {
		return piece{}, err
	}
	switch {
	case x.host.Load() == nil:
		view, err := m.mapNow(write)
		if err != nil {
			return piece{}, err
		}
		x.host.Store(view)
		x.writable = write
	case write && !x.writable:
		return piece{}, errors.New("the memory is mapped for a handle of read-only elements, " +
			"and cannot be written to until that is released")
	default:
		x.host.Load().refs.Add(1) // from zero, perhaps: see endMapping
	}
	by := int(p.address - m.region.Address)
	return piece{memory: x.host.Load(), address: offset(x.host.Load().region.Address, by), layout: p.layout,
		stop: p.stop}, nil
}

// mapNow makes the Memory that is the host's view of m, with one reference.
func (m *Memory) mapNow(write bool) (*Memory, error) {
	r := m.runtime
	if _, err := r.Backend(backends.Malloc); err != nil {
		return nil, err
	}
	at, err := m.mapper().Map(m.region, m.Size(), write)
	if err != nil {
		return nil, err
	}
	if r.tracing() {
		r.tracef("map %s device %d size %d at %#x to %#x", m.region.Allocator, m.region.Device, m.Size(), m.region.Address,
			at)
	}
	host := &Memory{runtime: r, served: &r.byAllocator[backends.Malloc], mapping: m.Retain().mapping,
		region: backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}}
	host.size.Store(m.size.Load())
	host.refs.Store(1)
	return host, nil
}

// endMapping unmaps the memory at the last Release of the host's view, unless somebody has retained the view again. If
// the work on the view cannot be waited for, the view stays until that work is certainly over.
func (m *Memory) endMapping(sure bool) error {
	x := m.mapping
	home := x.home
	x.mutex.Lock()
	if x.host.Load() != m || m.refs.Load() > 0 {
		x.mutex.Unlock()
		return nil
	}
	//mutate:skip memory is unmapped while another device reads it
	late := m.uses.Settle()
	// A wait reports what went wrong before it, too. Only a second one says whether the work is over.
	if late != nil && !sure && m.uses.Settle() != nil {
		x.mutex.Unlock()
		return errors.Join(late, m.releaseWhenIdle())
	}
	late = errors.Join(late, m.uses.End())
	if r := m.runtime; r.tracing() {
		r.tracef("unmap %s device %d size %d at %#x", home.region.Allocator, home.region.Device, home.Size(),
			home.region.Address)
	}
	if err := home.mapper().Unmap(home.region, m.region.Address); err != nil {
		// The error may be that of work before it. After a second one nothing can be done:
		// the memory counts as unmapped all the same.
		late = errors.Join(late, err)
		_ = home.mapper().Unmap(home.region, m.region.Address)
	}
	x.host.Store(nil)
	x.mutex.Unlock()
	return errors.Join(late, home.Release())
}

// settleView waits for work on the host's view of m, if there is one.
func (m *Memory) settleView() error {
	if !m.mappable() {
		return nil
	}
	x := m.mapping
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.host.Load() == nil {
		return nil
	}
	//mutate:skip the host's view is not waited for
	return x.host.Load().uses.Settle()
}

// there is ErrMapped while the host has m mapped, and a *backends.PausedError while it is paused.
func (m *Memory) there() error {
	//mutate:skip code on a device is given memory that is paused
	if err := m.notPaused(); err != nil {
		return err
	}
	if !m.mappable() {
		return nil
	}
	x := m.mapping
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.host.Load() != nil {
		//mutate:skip a device is given what the host has mapped
		return ErrMapped
	}
	return nil
}

// notPaused is a *backends.PausedError while m is paused.
func (m *Memory) notPaused() error {
	if m == nil || m.pauser == nil || m.runtime.pauses.ever.Load() == 0 {
		return nil
	}
	release, err := m.pauser.Hold(m.region)
	if err == nil {
		release()
	}
	return err
}

// mapper is the ability of a backend whose memory the host can map.
func (m *Memory) mapper() backends.Mapper {
	able, _ := backends.As[backends.Mapper](m.backend)
	return able
}

// NativeHandle returns what the runtime of m's allocator knows the allocation by that holds at, as a cl_mem, and the
// offset of at in it. Where addresses are no more than that, it is the one where the memory starts.
func (m *Memory) NativeHandle(at backends.Address) (handle uintptr, offset int, err error) {
	if err := m.check(); err != nil {
		return 0, 0, err
	}
	r := m.region
	if !r.Allocator.Facts().Opaque {
		return uintptr(r.Address), int(at - r.Address), nil
	}
	native, ok := backends.As[backends.NativeHandles](m.backend)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	r.Address = at
	return native.NativeHandle(r)
}
