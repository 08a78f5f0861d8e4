package backendtest

import "hamr/backends"

// LockHost makes ordinary host memory page-locked, as whoever owns it does by its driver: it is memory of an allocator
// of that kind, whatever callers take it for.
func (f *fakeMemory) LockHost(at backends.Address, size int, as backends.Allocator) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.insert(&block{base: at, size: size, reach: size, allocator: as, device: backends.HostDevice,
		data: hostBytes(at, size), locked: true})
}

// UnlockHost ends that. Work that still uses the memory goes on as if it had not.
func (f *fakeMemory) UnlockHost(at backends.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, b := range f.blocks {
		if b.locked && b.base == at {
			f.blocks = append(f.blocks[:i:i], f.blocks[i+1:]...)
			return
		}
	}
	_ = f.violate("UnlockHost", "%#x is not page-locked", at)
}

// asLocked is the allocator by which the driver finds host memory, of which callers need not know that it is
// page-locked. Where only a part is, it is ordinary.
func (f *fakeMemory) asLocked(r backends.Region, size int) (b *block, as backends.Allocator) {
	b = f.find(r.Address)
	switch {
	case b == nil || !b.locked || r.Allocator.Backend() == f.Name():
		return b, r.Allocator
	case int(r.Address-b.base)+size > b.size:
		return nil, r.Allocator
	}
	return b, b.allocator
}
