package cuda

import (
	"errors"
	"unsafe"
)

// setAway says whether the memory of a group is there. peers.mu is held.
func (b *pausingFloor) setAway(g *group, is bool) {
	b.extents.mu.Lock()
	defer b.extents.mu.Unlock()
	for _, e := range g.extents {
		switch {
		case !is:
			e.away = nil
		case e.away == nil:
			e.away = make([]away, len(e.mapped))
		}
	}
}

// detach unmaps a group's memory and gives it back. It keeps handles of the memory until all is unmapped, so that what
// fails before can be undone. It holds peers.mu, so that a device that is connected meanwhile finds all or nothing.
func (b *pausingFloor) detach(g *group) error {
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	b.setAway(g, true)
	for _, step := range []func(place) error{b.retainPiece, b.unmapPiece, b.dropHandle} {
		if err := g.each(step); err != nil {
			return err
		}
	}
	return nil
}

func (b *pausingFloor) retainPiece(p place) error {
	v, err := b.enter(p.e.device.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := b.call(b.driver.MemRetainHandle, v.slot(0), uintptr(p.at)); err != nil {
		return err
	}
	p.piece.handle = uintptr(v.out[0])
	return nil
}

func (b *pausingFloor) unmapPiece(p place) error {
	if p.piece.unmapped {
		return nil
	}
	v, err := b.enter(p.e.device.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := b.call(b.driver.MemUnmap, uintptr(p.at), uintptr(p.size)); err != nil {
		return err
	}
	p.piece.unmapped = true
	return nil
}

// attach maps memory wherever a group lacks it. Handles of it stay until settle or detachAgain. After an error all is
// away that was.
func (b *pausingFloor) attach(g *group) error {
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	var undo []func() error
	err := g.each(func(p place) error {
		if p.piece == nil || !p.piece.unmapped {
			return nil
		}
		made := p.piece.handle == 0
		if err := b.mapPiece(p); err != nil {
			return err
		}
		undo = append(undo, func() error {
			err := b.unmapPiece(p)
			if made {
				err = errors.Join(err, b.dropHandle(p))
			}
			return err
		})
		return nil
	})
	for i := len(undo) - 1; i >= 0 && err != nil; i-- {
		err = errors.Join(err, undo[i]())
	}
	return err
}

// mapPiece maps the memory of a piece's handle, or new memory. After an error all is as before.
func (b *pausingFloor) mapPiece(p place) error {
	u, err := b.units(p.e.device)
	if err != nil {
		return err
	}
	v, err := b.enter(p.e.device.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	made := p.piece.handle == 0
	if made {
		if err := b.callWithPointers(b.driver.MemCreate, v.slot(0), uintptr(p.size),
			uintptr(unsafe.Pointer(u.properties)), 0); err != nil {
			return err
		}
		p.piece.handle = uintptr(v.out[0])
	}
	err = b.call(b.driver.MemMap, uintptr(p.at), uintptr(p.size), 0, p.piece.handle, 0)
	if err == nil {
		p.piece.unmapped = false
		//mutate:skip memory that is resumed is closed to all devices
		if err = b.openToUsers(p.e, p.at, p.size); err == nil {
			return nil
		}
		err = errors.Join(err, b.unmapPiece(p))
	}
	if made {
		err = errors.Join(err, b.dropHandle(p))
	}
	return err
}

// detachAgain takes away what attach has mapped, and all else of the group, whose contents are kept.
func (b *pausingFloor) detachAgain(g *group) (failed error) {
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	_ = g.each(func(p place) error {
		if p.piece != nil {
			failed = errors.Join(failed, b.unmapPiece(p), b.dropHandle(p))
		}
		return nil
	})
	return failed
}

// settle ends the handles, since mapped memory keeps itself, and says that all is there.
func (b *pausingFloor) settle(g *group) {
	b.peers.mu.Lock()
	defer b.peers.mu.Unlock()
	_ = g.each(func(p place) error {
		if p.piece != nil {
			_ = b.dropHandle(p) // what the driver does not take, it frees with the process
		}
		return nil
	})
	b.setAway(g, false)
}
