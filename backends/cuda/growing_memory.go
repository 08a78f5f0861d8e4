package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"hamr/backends"
)

// newExtent reserves addresses for size bytes and, if it grows, for what they may become.
func (b *growthFloor) newExtent(d *device, u *units, size int, grows bool) (*extent, error) {
	if size > u.total {
		return nil, b.failure("cuMemCreate", outOfMemory)
	}
	wanted := max(u.total, size)
	b.extents.mu.RLock()
	if b.extents.reserved > mostReserved-wanted {
		wanted = 2 * size
	}
	b.extents.mu.RUnlock()
	if b.reserve > 0 {
		wanted = max(b.reserve, size)
	}
	if !grows {
		wanted = size
	}
	at, refused, err := b.addresses(d, u.rounded(wanted), 0)
	if refused && wanted > size {
		wanted = size
		at, _, err = b.addresses(d, u.rounded(wanted), 0)
	}
	if err != nil {
		return nil, err
	}
	e := &extent{device: d, start: at, reserved: []int{u.rounded(wanted)}}
	b.extents.add(e)
	return e, nil
}

// reach makes the addresses of an extent enough for size bytes. The error is
// errors.ErrUnsupported where those behind it are taken.
func (b *growthFloor) reach(e *extent, size int) error {
	have := sum(e.reserved)
	if size <= have {
		return nil
	}
	for _, more := range []int{max(size-have, have), size - have} {
		end := e.start + backends.Address(have)
		_, refused, err := b.addresses(e.device, more, end)
		if refused {
			continue // there may be fewer
		}
		if err != nil {
			return err
		}
		b.extents.mu.Lock()
		e.reserved = append(e.reserved, more)
		b.extents.mu.Unlock()
		return nil
	}
	return fmt.Errorf("the addresses behind %#x and its %d bytes are taken: %w", e.start, have, errors.ErrUnsupported)
}

// addresses reserves size bytes of them, from wanted on unless that is zero. It is refused,
// with an error as well, where there are not as many.
func (b *growthFloor) addresses(d *device, size int, wanted backends.Address) (at backends.Address, refused bool,
	err error) {
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return 0, false, err
	}
	defer v.leave()
	if code := b.try(b.driver.MemAddressReserve, v.slot(0), uintptr(size), 0, uintptr(wanted), 0); code != success {
		return 0, code == outOfMemory, b.finish(b.driver.MemAddressReserve, code)
	}
	at = backends.Address(v.out[0])
	if wanted != 0 && at != wanted { // where these are somebody's, the driver chooses others
		if err := b.call(b.driver.MemAddressFree, uintptr(at), uintptr(size)); err != nil {
			_ = b.call(b.driver.MemAddressFree, uintptr(at), uintptr(size))
			return 0, false, err
		}
		return 0, true, errors.ErrUnsupported
	}
	b.extents.mu.Lock()
	b.extents.reserved += size
	b.extents.mu.Unlock()
	return at, false, nil
}

func (b *growthFloor) endAddresses(d *device, at backends.Address, size int) error {
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := b.call(b.driver.MemAddressFree, uintptr(at), uintptr(size)); err != nil {
		return err
	}
	b.extents.mu.Lock()
	b.extents.reserved -= size
	b.extents.mu.Unlock()
	return nil
}

// back maps memory up to size bytes, all of it or none. No piece lies in two reservations.
func (b *growthFloor) back(e *extent, size int, u *units) error {
	had := len(e.mapped)
	limit := 0
	for _, reserved := range e.reserved {
		limit += reserved
		mapped := sum(e.mapped)
		more := min(limit, size) - mapped
		if more <= 0 {
			continue
		}
		if err := b.mapNew(e, more, u); err != nil {
			return errors.Join(err, b.unmapFrom(e, had))
		}
	}
	return nil
}

// mapNew maps new memory behind an extent's.
func (b *growthFloor) mapNew(e *extent, size int, u *units) error {
	v, err := b.enter(e.device.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	if err := b.callWithPointers(b.driver.MemCreate, v.slot(0), uintptr(size), uintptr(unsafe.Pointer(u.properties)),
		0); err != nil {
		return err
	}
	return b.mapHandle(e, size, uintptr(v.out[0]))
}

// mapHandle maps memory, and releases its handle in any case: memory lasts as long as it is mapped somewhere. It
// holds peers.mu, so that it misses no device that is connected meanwhile.
func (b *growthFloor) mapHandle(e *extent, size int, handle uintptr) error {
	p := &b.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	at := e.end()
	if err := b.call(b.driver.MemMap, uintptr(at), uintptr(size), 0, handle, 0); err != nil {
		return errors.Join(err, b.release(handle))
	}
	err := b.openToUsers(e, at, size)
	if released := b.release(handle); err == nil {
		err = released
	}
	if err != nil {
		return errors.Join(err, b.call(b.driver.MemUnmap, uintptr(at), uintptr(size)))
	}
	b.extents.mu.Lock()
	e.mapped = append(e.mapped, size)
	b.extents.mu.Unlock()
	return nil
}

// mapAgain maps what old has to a new extent, too.
func (b *growthFloor) mapAgain(e, old *extent) error {
	at := old.start
	for _, size := range old.mapped {
		v, err := b.enter(e.device.number, defaultStream)
		if err != nil {
			return err
		}
		err = b.call(b.driver.MemRetainHandle, v.slot(0), uintptr(at))
		handle := uintptr(v.out[0])
		v.leave()
		if err != nil {
			return err
		}
		if err := b.mapHandle(e, size, handle); err != nil {
			return err
		}
		at += backends.Address(size)
	}
	return nil
}

// unmapFrom takes an extent's memory away again, from a piece on.
func (b *growthFloor) unmapFrom(e *extent, piece int) error {
	v, err := b.enter(e.device.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	for i := len(e.mapped) - 1; i >= piece; i-- {
		if err := b.unmapLast(e, i); err != nil {
			return err
		}
	}
	return nil
}

// unmapLast unmaps the last piece. It holds the lock, so that no device is given access to a piece that is in the
// list but not mapped any more.
func (b *growthFloor) unmapLast(e *extent, piece int) error {
	b.extents.mu.Lock()
	defer b.extents.mu.Unlock()
	at, size := e.end()-backends.Address(e.mapped[piece]), e.mapped[piece]
	if e.away == nil || !e.away[piece].unmapped {
		if err := b.call(b.driver.MemUnmap, uintptr(at), uintptr(size)); err != nil {
			return err
		}
	}
	e.mapped = e.mapped[:piece]
	return nil
}

// giveUp takes an extent's memory and addresses away. What fails can be done again.
func (b *growthFloor) giveUp(e *extent) error {
	if err := b.unmapFrom(e, 0); err != nil {
		return err
	}
	for i := len(e.reserved) - 1; i >= 0; i-- {
		if err := b.endAddresses(e.device, e.start+backends.Address(sum(e.reserved[:i])), e.reserved[i]); err != nil {
			return err
		}
		b.extents.mu.Lock()
		e.reserved = e.reserved[:i]
		b.extents.mu.Unlock()
	}
	b.extents.remove(e)
	return nil
}

// release gives a handle back, and tries again where that failed.
func (b *growthFloor) release(handle uintptr) error {
	err := b.call(b.driver.MemRelease, handle)
	if err != nil {
		_ = b.call(b.driver.MemRelease, handle)
	}
	return err
}
