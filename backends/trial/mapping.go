//go:build trial

package trial

import (
	"errors"
	"slices"
	"syscall"

	"hamr/backends"
)

// Maps is true of both allocators.
func (*Backend) Maps(a backends.Allocator) bool { return a.Backend() == name }

// Map gives the host a copy: for TrialSVM at the memory's own address, otherwise at a new place.
func (b *Backend) Map(at backends.Region, size int, write bool) (backends.Address, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Map"); err != nil {
		return 0, err
	}
	p, err := b.part("Map", at, size)
	if err != nil {
		return 0, err
	}
	if i := b.pendingOn(p); i != nil {
		return 0, b.violate("Map", "a %s is still to run on %s", i.what, describe(at))
	}
	k := p.block
	w := window{part: p, write: write}
	if k.shared != nil {
		if len(k.mapped) > 0 {
			return 0, b.violate("Map", "%s is mapped twice", describe(at))
		}
		w.host = k.shared[p.from:][:size]
		err = syscall.Mprotect(k.shared, syscall.PROT_READ|syscall.PROT_WRITE)
	} else {
		w.host, err = mmap(size, syscall.PROT_READ|syscall.PROT_WRITE)
	}
	if err != nil {
		return 0, &backends.OutOfMemoryError{Allocator: at.Allocator, Device: at.Device, Size: size, Detail: err.Error()}
	}
	copy(w.host, p.bytes())
	if !write {
		err = k.protect(w, syscall.PROT_READ)
	}
	k.mapped = append(k.mapped, w)
	return addressOf(w.host), err
}

// Unmap takes over what the host has written, and closes the memory to the host: a later access ends the process.
func (b *Backend) Unmap(at backends.Region, host backends.Address) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Unmap"); err != nil {
		return err
	}
	k := b.find(at.Address)
	if k == nil || k.freed {
		return b.violate("Unmap", "%s is nothing", describe(at))
	}
	i := slices.IndexFunc(k.mapped, func(w window) bool {
		return k.base+backends.Address(w.from) == at.Address && addressOf(w.host) == host
	})
	if i < 0 {
		return b.violate("Unmap", "%s is not mapped to %#x", describe(at), host)
	}
	w := k.mapped[i]
	if w.write {
		copy(w.bytes(), w.host)
	}
	k.mapped = slices.Delete(k.mapped, i, i+1)
	err := k.protect(w, syscall.PROT_NONE)
	if k.shared == nil {
		// One such place stays closed, so that the next mapping is elsewhere.
		err = errors.Join(err, munmap(k.old))
		k.old = w.host
	}
	return err
}

func (k *block) protect(w window, protection int) error {
	if k.shared != nil {
		return syscall.Mprotect(k.shared, protection)
	}
	return syscall.Mprotect(w.host, protection)
}
