package backendtest

import (
	"errors"
	"fmt"

	"hamr/backends"
)

// growthUnit is what the size of memory that has grown is a multiple of.
const growthUnit = 64

// Grow rounds sizes up.
func (f *fakeMemory) Grow(at backends.Region, had, size int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Grow", "%s, from %d to %d bytes", describe(at), had, size); err != nil {
		return 0, err
	}
	b, err := f.blockToGrow("Grow", at, had, size)
	if err != nil {
		return 0, err
	}
	asked := size
	size = (size + growthUnit - 1) / growthUnit * growthUnit
	if size > b.reach {
		return 0, fmt.Errorf("there are addresses for %d bytes: %w", b.reach, errors.ErrUnsupported)
	}
	if err := f.take(b, size, asked); err != nil {
		return 0, err
	}
	b.store.extend(b, size)
	return size, nil
}

// Relocate makes another block of the same memory.
func (f *fakeMemory) Relocate(at backends.Region, had, size int) (backends.Address, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Relocate", "%s, from %d to %d bytes", describe(at), had, size); err != nil {
		return 0, 0, err
	}
	b, err := f.blockToGrow("Relocate", at, had, size)
	if err != nil {
		return 0, 0, err
	}
	if err := f.take(b, size, size); err != nil {
		return 0, 0, err
	}
	reach := max(f.options.Grows, 2*size)
	next := &block{allocator: b.allocator, device: b.device, reach: reach, base: newAddresses(reach), store: b.store}
	next.store.extend(next, size)
	next.store.blocks = append(next.store.blocks, next)
	f.insert(next)
	return next.base, size, nil
}

func (f *fakeMemory) blockToGrow(call string, at backends.Region, had, size int) (*block, error) {
	if size <= had {
		return nil, f.violate(call, "%s, which has %d bytes, is to have %d", describe(at), had, size)
	}
	b, err := f.blockOf(call, at, had)
	if err == nil && b.store == nil {
		err = f.violate(call, "%s cannot grow", describe(at))
	}
	return b, err
}

// take counts the bytes that a block's memory needs more. An error names the size that was asked for.
func (f *fakeMemory) take(b *block, size, asked int) error {
	more := max(size-b.store.bytes, 0)
	if err := f.checkRoom(backends.Request{Allocator: b.allocator, Device: b.device, Size: asked},
		b.owner(), more); err != nil {
		return err
	}
	f.used[b.owner()] += int64(more)
	return nil
}
