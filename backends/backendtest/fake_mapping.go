package backendtest

import (
	"slices"
	"syscall"

	"hamr/backends"
)

// Maps is what FakeOptions.Mapped says, or the facts, of memory that the host cannot touch.
func (f *fakeMemory) Maps(a backends.Allocator) bool {
	return (f.options.Mapped || a.Facts().Mapped) && a.Backend() == f.Name() && a.Kind() == backends.DeviceOnly
}

// Map hands out a copy at a new place, as a device of its own would.
func (f *fakeMemory) Map(at backends.Region, size int, write bool) (backends.Address, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Map", "%s, %d bytes, write %v", describe(at), size, write); err != nil {
		return 0, err
	}
	m, err := f.view("Map", at, size)
	if err != nil {
		return 0, err
	}
	if m.block == nil || !f.Maps(m.block.allocator) {
		return 0, f.violate("Map", "%s cannot be mapped", describe(at))
	}
	data, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return 0, &backends.OutOfMemoryError{Allocator: at.Allocator, Device: at.Device, Size: size, Detail: err.Error()}
	}
	copy(data, m.bytes())
	if !write {
		_ = syscall.Mprotect(data, syscall.PROT_READ)
	}
	m.block.mapped = append(m.block.mapped, mapped{m.offset, m.offset + size, write, data})
	return addressOf(data), nil
}

// Unmap writes back what was mapped for writing.
func (f *fakeMemory) Unmap(at backends.Region, host backends.Address) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Unmap", "%s at %#x", describe(at), host); err != nil {
		return err
	}
	b := f.find(at.Address)
	if b == nil || b.freeing {
		return f.violate("Unmap", "unknown address %s", describe(at))
	}
	i := slices.IndexFunc(b.mapped, func(m mapped) bool {
		return addressOf(m.host) == host && b.base+backends.Address(m.from) == at.Address
	})
	if i < 0 {
		return f.violate("Unmap", "%s is not mapped to %#x", describe(at), host)
	}
	m := b.mapped[i]
	if m.write {
		copy(b.data[m.from:m.to], m.host)
	}
	b.mapped = slices.Delete(b.mapped, i, i+1)
	return syscall.Munmap(m.host)
}

// truth returns the bytes at at for who may use them now.
func (f *fakeMemory) truth(at backends.Address, size int) []byte {
	if b := f.find(at); b != nil && !b.freed {
		from := int(at - b.base)
		if m := b.held(from, from+size); m != nil && m.write && m.from <= from && from+size <= m.to {
			return m.host[from-m.from:][:size]
		}
	}
	return f.bytesAt(at, size)
}
