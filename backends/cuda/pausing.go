package cuda

import (
	"errors"
	"fmt"

	"hamr/backends"
)

// pausingFloor is the floor of memory that is given back while its addresses stay.
type pausingFloor struct{ memoryFloor }

// Pauses is true of CUDAVMM, and of CUDA, whose memory is cut from CUDAVMM's where a Request has a Tag.
func (b *pausingFloor) Pauses(a backends.Allocator) bool {
	return a != backends.None && b.dialect.Allocators.Growing != backends.None &&
		(a == b.dialect.Allocators.Growing || a == b.dialect.Allocators.Plain)
}

// Hold implements backends.Pauser.
func (b *pausingFloor) Hold(at ...backends.Region) (release func(), err error) {
	if !b.pauses.ever.Load() {
		return nothingHeld, nil
	}
	return b.pauses.hold(&b.extents, at)
}

func nothingHeld() {}

// Pause implements backends.Pauser.
func (b *pausingFloor) Pause(t backends.Tag, keep backends.Keep, folder string) error {
	g := b.pauses.groupOf(t)
	g.changing.Lock()
	defer g.changing.Unlock()
	if g.is(paused) {
		if g.keep != keep {
			return fmt.Errorf("%q is paused, and keeps %s: to keep %s it has to be resumed before", t, g.keep, keep)
		}
		return nil
	}
	b.pauses.turn(g, pausing)
	if err := b.giveBack(g, keep, folder); err != nil {
		return b.undoPause(g, err)
	}
	g.keep = keep
	b.pauses.turn(g, paused)
	return nil
}

// giveBack waits for the devices, keeps the contents, and takes the memory away. g.kept is what was kept by then.
func (b *pausingFloor) giveBack(g *group, keep backends.Keep, folder string) error {
	for _, d := range g.devices() {
		//mutate:skip memory is paused under a kernel
		if err := b.waitForUsers(d); err != nil {
			return err
		}
	}
	if err := b.save(g, keep, folder); err != nil {
		return err
	}
	return b.detach(g)
}

// undoPause brings back what a Pause that failed has taken away. Where that fails, too, all is paused.
func (b *pausingFloor) undoPause(g *group, failed error) error {
	err := b.bringBack(g)
	if err != nil {
		b.pauses.turn(g, paused)
		return errors.Join(failed, err)
	}
	b.pauses.turn(g, running)
	return failed
}

// Resume implements backends.Pauser.
func (b *pausingFloor) Resume(t backends.Tag) error {
	g := b.pauses.groupOf(t)
	g.changing.Lock()
	defer g.changing.Unlock()
	if !g.is(paused) {
		return nil
	}
	err := b.bringBack(g)
	if isOutOfMemory(err) && b.trimForMore(b.dialect.Allocators.Growing) {
		err = b.bringBack(g)
	}
	if isOutOfMemory(err) {
		at := backends.Region{Allocator: b.dialect.Allocators.Growing}
		if list := g.devices(); len(list) > 0 {
			at.Device = list[0].number
		}
		return b.outOf(at, g.bytes(nil))
	}
	if err != nil {
		return err
	}
	b.pauses.turn(g, running)
	return nil
}

// bringBack maps memory where it is missing, and restores the contents. After an error all that Pause took away is
// away again.
func (b *pausingFloor) bringBack(g *group) error {
	if err := b.attach(g); err != nil {
		return err
	}
	err := b.restore(g)
	if refused(err) {
		return err // the memory stays for the next time, as the device may still write there
	}
	if err != nil {
		return errors.Join(err, b.detachAgain(g))
	}
	b.settle(g)
	b.forget(g)
	return nil
}

// IsPaused implements backends.Pauser.
func (b *pausingFloor) IsPaused(t backends.Tag) bool {
	p := &b.pauses
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[t]
	return g != nil && g.is(paused)
}

// Paused implements backends.Pauser.
func (b *pausingFloor) Paused() (list []backends.Paused) {
	for _, g := range b.pauses.all() {
		g.changing.Lock()
		known := backends.Paused{Tag: g.tag, Is: g.is(paused), Locked: g.locked()}
		if known.Is {
			known.Keep = g.keep
		}
		for _, d := range g.devices() {
			known.Device, known.Bytes = d.number, int64(g.bytes(d))
			list = append(list, known)
		}
		if known.Is && len(g.extents) == 0 {
			known.Device = backends.HostDevice // new memory is refused all the same
			list = append(list, known)
		}
		g.changing.Unlock()
	}
	return list
}
