package cuda

import "hamr/backends"

// Trim waits for all work on the devices whose pools are in use. Then it gives back what the pools keep for reuse,
// and page-locked memory that no copy uses.
func (b *stagingFloor) Trim() error {
	if err := b.trimStaging(); err != nil {
		return err
	}
	if p := b.pinned.Load(); p != nil {
		if err := p.Trim(); err != nil {
			return err
		}
	}
	for _, d := range b.devices {
		if err := b.trimDevice(d); err != nil {
			return err
		}
	}
	return nil
}

// trimForMore gives back what it can, and reports whether more memory may be free now.
func (b *stagingFloor) trimForMore(of backends.Allocator) bool {
	if of == b.dialect.Allocators.Pinned {
		// The pool has given back what nobody uses.
		return b.staging.Held() > 0 && b.trimStaging() == nil
	}
	for _, d := range b.devices {
		if d.pool.Load() != 0 || d.reused.Load() != nil || len(d.tagged.all()) > 0 {
			return b.Trim() == nil
		}
	}
	return false
}
