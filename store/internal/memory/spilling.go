package memory

import (
	"errors"
	"fmt"

	"hamr/store/internal/protocol"
	"hamr/store/internal/spill"
	"hamr/store/internal/wire"
)

// Spill writes a unit to a file and lets go of its memory. The lock is let go of meanwhile; who takes a lease then ends
// it.
func (m *Memory) Spill(u *Unit) error {
	u.Moving = true
	u.list()
	u.retire()
	source := u.Descriptor.Retain()
	u.domain.leaving += u.Size
	var file *spill.File
	var err error
	m.lock.Pause(func() {
		file, err = m.save(u, source.Number)
		wire.Crash("server-spilled")
		source.Release()
	})
	u.domain.leaving -= u.Size
	u.Moving = false
	m.Moved()
	switch {
	case u.count == 0:
		if err == nil {
			file.Close()
		}
		m.free(u)
		return nil
	case err != nil:
		u.list()
		return err
	case u.blockers > 0:
		file.Close()
		u.list()
		return nil
	}
	u.Spilled = file
	u.Descriptor.Release()
	u.Descriptor = nil
	u.list()
	u.domain.used -= u.Size
	m.spilledBytes += u.Size
	u.domain.spilled += u.Size
	m.spills++
	// Clients that have the slab mapped have that memory still; it comes back as other memory.
	if old := (&Unit{ID: u.ID, domain: u.domain, Size: u.Size, gone: true, knownBy: u.knownBy}); len(old.knownBy) > 0 {
		for c := range old.knownBy {
			delete(c.known, u)
			c.known[old] = struct{}{}
			c.gone = append(c.gone, old.ID)
		}
		u.domain.lingering += u.Size
		m.lingering[old.ID] = old
	}
	delete(m.slabs, u.ID)
	u.knownBy, u.ID = nil, protocol.NewID()
	m.slabs[u.ID] = u
	m.tellAll(u, protocol.Spilled)
	return nil
}

// tellAll tells of all objects of a unit what has happened to them.
func (m *Memory) tellAll(u *Unit, kind protocol.EventKind) {
	for _, t := range u.tenants {
		if t != nil {
			m.objects.Tell(protocol.Event{Kind: kind, ID: t.ID})
		}
	}
}

// save writes a unit's memory to a file of the server's.
func (m *Memory) save(u *Unit, descriptor int) (f *spill.File, err error) {
	file, err := m.OpenFile(m.options.Spill)
	if err == nil {
		memory := spill.Memory{Descriptor: descriptor, Device: u.domain.device, Size: u.Size, Filled: u.filled}
		f, err = spill.Save(file, memory, m.options.Devices)
	}
	if err != nil {
		return nil, fmt.Errorf("spilling to %s: %w", m.options.Spill, err)
	}
	return f, nil
}

// Restore brings a unit's memory back. The lock is let go of meanwhile.
func (m *Memory) Restore(u *Unit) error {
	for u.Moving {
		m.Wait()
	}
	if u.Spilled == nil {
		return nil
	}
	u.Moving = true
	defer func() {
		u.Moving = false
		m.Moved()
		if u.count == 0 {
			m.free(u)
		} else {
			u.list()
		}
	}()
	swaps, err := m.roomToRestore(u)
	if err != nil {
		return err
	}
	if swaps {
		m.swapping = true
		defer func() { m.swapping = false }()
	}
	file := u.Spilled
	var number int
	err = m.retrying(func() (err error) {
		m.lock.Pause(func() {
			number, err = file.Load(u.Size, m.options.Devices)
			wire.Crash("server-restored")
		})
		return err
	})
	if err != nil {
		u.domain.used -= u.Size
		if errors.As(err, new(*protocol.FullError)) {
			return err
		}
		return &protocol.SystemError{
			Problem: fmt.Sprintf("bringing back what was spilled to %s: %v", m.options.Spill, err),
		}
	}
	u.Descriptor = wire.NewDescriptor(number)
	u.Spilled, u.Writable, u.Replaced = nil, false, true
	file.Close()
	m.spilledBytes -= u.Size
	u.domain.spilled -= u.Size
	m.restored++
	m.tellAll(u, protocol.Restored)
	if !swaps {
		return nil
	}
	if err = m.room(u.domain, 0); err != nil {
		u.Moving = false
		u.list()
		_ = m.Spill(u)
	}
	return err
}

// roomToRestore makes room for a unit that is in a file. Where nothing else can be spilled, as the files have no room,
// the unit comes back beyond the limit, and gives its file's room to others: then it swaps, one unit at a time.
func (m *Memory) roomToRestore(u *Unit) (swaps bool, err error) {
	for {
		err = m.room(u.domain, u.Size)
		//mutate:always what is in a full folder does not come back
		if !errors.As(err, new(*protocol.SystemError)) {
			return false, err
		}
		if !m.swapping {
			u.domain.count(u.Size)
			return true, nil
		}
		m.Wait()
	}
}
