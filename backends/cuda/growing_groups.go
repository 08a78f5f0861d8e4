package cuda

import (
	"errors"
	"slices"

	"hamr/backends"
)

// join returns the group that new memory of a tag is to belong to, with its lock; nil for NoTag.
func (b *growthFloor) join(t backends.Tag) (*group, error) {
	if t == backends.NoTag {
		return nil, nil
	}
	if b.driver.MemRetainHandle == 0 {
		return nil, &backends.UnavailableError{Backend: b.Name(),
			Reason: "the driver lacks cuMemRetainAllocationHandle, which memory needs that can be paused"}
	}
	g := b.pauses.groupOf(t)
	if err := g.lock(); err != nil {
		return nil, err
	}
	return g, nil
}

// dropHandle gives a handle back, which needs no context. Where that fails twice the memory is still there, and is used
// again.
func (b *growthFloor) dropHandle(p place) error {
	if p.piece.handle == 0 {
		return nil
	}
	if err := b.call(b.driver.MemRelease, p.piece.handle); err != nil {
		if b.call(b.driver.MemRelease, p.piece.handle) != nil {
			return err
		}
	}
	p.piece.handle = 0
	return nil
}

// endAway gives back what there still is of an extent's memory while that is paused.
func (b *growthFloor) endAway(e *extent) error {
	return e.each(func(p place) error {
		if p.piece == nil {
			return nil
		}
		return b.dropHandle(p)
	})
}

// leave takes an extent out of its group, and what is kept of it.
func (b *growthFloor) leave(e *extent) {
	g := e.group
	if g == nil {
		return
	}
	g.extents = slices.DeleteFunc(g.extents, func(other *extent) bool { return other == e })
	if len(g.extents) == 0 {
		_ = b.dropSpare(g) // there may be no next time
	}
	if g.kept == nil {
		return
	}
	if block, is := g.kept.blocks[e]; is {
		delete(g.kept.blocks, e)
		_ = b.givePinnedBack(block.at) // the pool has it, whatever the driver says
	}
}

// dropSpare gives page-locked memory back that a group has for the next time.
func (b *growthFloor) dropSpare(g *group) (failed error) {
	for _, block := range g.spare {
		failed = errors.Join(failed, b.givePinnedBack(block.at))
	}
	g.spare = nil
	return failed
}

// Trim also gives back page-locked memory that tags have for the next time.
func (b *growthFloor) Trim() error {
	if _, err := b.trimSpare(); err != nil {
		return err
	}
	return b.stagingFloor.Trim()
}

func (b *growthFloor) trimForMore(of backends.Allocator) bool {
	some := false
	if of == b.dialect.Allocators.Pinned {
		some, _ = b.trimSpare()
	}
	return b.stagingFloor.trimForMore(of) || some
}

// trimSpare passes over tags that are being paused or resumed.
func (b *growthFloor) trimSpare() (some bool, failed error) {
	for _, g := range b.pauses.all() {
		if !g.changing.TryLock() {
			continue
		}
		some = some || len(g.spare) > 0
		if err := b.dropSpare(g); failed == nil {
			failed = err
		}
		g.changing.Unlock()
	}
	return some, failed
}
