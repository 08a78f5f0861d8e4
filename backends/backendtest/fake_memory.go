package backendtest

import (
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"hamr/backends"
)

// fakeMemory is the floor of memory, and of what is done with it.
type fakeMemory struct {
	fakeOrder

	blocks    []*block                  // by base
	freed     int                       // how many of blocks
	used      []int64                   // bytes, by device
	executing bool                      // a kernel is running
	elsewhere map[backends.Address]bool // blocks of other contexts, by base
	settled   int                       // what SynchronizeContext has waited for
	modules   fakeModules
}

func (f *fakeMemory) newBlock(r backends.Request, device int) (*block, error) {
	limited := r.Allocator.Kind() != backends.Pinned
	if limited {
		if err := f.checkRoom(r, device, r.Size); err != nil {
			return nil, err
		}
	}
	b := &block{size: r.Size, allocator: r.Allocator, device: r.Device, reach: r.Size}
	if b.kind() == backends.DeviceOnly && !f.options.Fine {
		b.data = make([]byte, r.Size)
		if f.Grows(r.Allocator) {
			b.reach = max(r.Size, f.options.Grows)
			b.store = &store{bytes: r.Size, blocks: []*block{b}}
		}
		b.base = newAddresses(b.reach)
	} else {
		data, err := syscall.Mmap(-1, 0, r.Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return nil, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size, Detail: err.Error()}
		}
		b.data, b.base = data, backends.Address(unsafe.Pointer(unsafe.SliceData(data)))
	}
	spoil(b.data)
	if limited {
		f.used[device] += int64(r.Size)
	}
	f.insert(b)
	return b, nil
}

func (f *fakeMemory) insert(b *block) {
	i, _ := slices.BinarySearchFunc(f.blocks, b.base, byBase)
	f.blocks = slices.Insert(f.blocks, i, b)
}

// checkRoom returns the error for a request of more bytes than a device has left.
func (f *fakeMemory) checkRoom(r backends.Request, device, more int) error {
	if int64(more) > f.options.Memory-f.used[device] {
		// Stream-ordered releases may still be queued: a driver waits for them.
		f.finishDevice(device)
	}
	if int64(more) > f.options.Memory-f.used[device] {
		return &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size, Detail: "fake limit"}
	}
	return nil
}

// find returns the block that holds at, freed ones included, or nil.
func (f *fakeMemory) find(at backends.Address) *block {
	i, exact := slices.BinarySearchFunc(f.blocks, at, byBase)
	if exact {
		return f.blocks[i]
	}
	if i > 0 && at < f.blocks[i-1].base+backends.Address(f.blocks[i-1].size) {
		return f.blocks[i-1]
	}
	return nil
}

// release takes the memory away. Host-visible blocks stay reserved, so that a
// late access faults and the address is not used again.
func (f *fakeMemory) release(b *block) {
	if b.store != nil {
		f.used[b.owner()] -= int64(b.store.leave(b))
	} else if b.kind() != backends.Pinned {
		f.used[b.owner()] -= int64(b.size)
	}
	if (b.kind() != backends.DeviceOnly || f.options.Fine) && !b.shared {
		_ = syscall.Madvise(b.data, syscall.MADV_DONTNEED)
		_ = syscall.Mprotect(b.data, syscall.PROT_NONE)
	}
	b.freed, b.data = true, nil
	if f.freed++; f.freed > mostFreedBlocks {
		f.blocks = slices.DeleteFunc(f.blocks, func(b *block) bool { return b.freed })
		f.freed = 0
	}
}

func (f *fakeMemory) blockToFree(at backends.Region, size int) (*block, error) {
	return f.blockOf("Free", at, size)
}

// blockOf returns the block that is at an address, and has size bytes unless that is zero.
func (f *fakeMemory) blockOf(call string, at backends.Region, size int) (*block, error) {
	b := f.find(at.Address)
	switch {
	case b == nil:
		return nil, f.violate(call, strings.ToLower(call)+" of unknown address %s", describe(at))
	case b.freeing:
		return nil, f.violate(call, "double free of %s", describe(at))
	case b.base != at.Address:
		return nil, f.violate(call, strings.ToLower(call)+" of %s, %d bytes into a block", describe(at), at.Address-b.base)
	case b.allocator != at.Allocator:
		return nil, f.violate(call, strings.ToLower(call)+" of %s, which came from allocator %s", describe(at), b.allocator)
	case b.shared && call == "Free":
		return nil, f.violate(call, "free of %s, which is shared", describe(at))
	case b.device != at.Device && b.kind() != backends.Pinned:
		return nil, f.violate(call, strings.ToLower(call)+" of %s, which is on device %d: wrong device", describe(at),
			b.device)
	case size != 0 && b.size != size:
		return nil, f.violate(call, strings.ToLower(call)+" of %s with size %d, which has %d", describe(at), size, b.size)
	}
	return b, nil
}

// view checks that size bytes at r may be used now.
func (f *fakeMemory) view(call string, r backends.Region, size int) (memory, error) {
	b, as := f.asLocked(r, size)
	r.Allocator = as
	if b == nil {
		if r.Address >= firstDeviceAddress || r.Allocator.Backend() == f.Name() {
			return memory{}, f.violate(call, "unknown address %s", describe(r))
		}
		if r.Device != backends.HostDevice {
			return memory{}, f.violate(call, "host memory %s with a device number: wrong device", describe(r))
		}
		return memory{host: hostBytes(r.Address, size), size: size, pageable: r.Allocator.Kind() != backends.Pinned}, nil
	}
	offset := int(r.Address - b.base)
	switch {
	case b.freeing:
		return memory{}, f.violate(call, "use after free of %s", describe(r))
	case r.Allocator.Kind() != b.kind() || r.Allocator.Backend() != f.Name():
		return memory{}, f.violate(call, "%s is memory of allocator %s", describe(r), b.allocator)
	case r.Device != b.device && b.kind() != backends.Pinned:
		return memory{}, f.violate(call, "%s is on device %d: wrong device", describe(r), b.device)
	case offset+size > b.size:
		return memory{}, f.violate(call, "out of bounds: %d bytes at offset %d of %s, which has %d", size,
			offset, describe(r), b.size)
	}
	if b.held(offset, offset+size) != nil {
		return memory{}, f.violate(call, "%s is used while the host has it mapped", describe(r))
	}
	return memory{block: b, offset: offset, size: size}, nil
}

// onBlock does late work on b, if it is still there.
func (f *fakeMemory) onBlock(b *block, what string, work func()) {
	if b != nil && len(b.mapped) > 0 {
		_ = f.violate("Execute", "a late %s on %s:%d@%#x while the host has it mapped", what, b.allocator,
			b.device, uintptr(b.base))
	}
	if b != nil && b.freed {
		_ = f.violate("Execute", "use after free: a late %s on %s:%d@%#x", what, b.allocator, b.device, uintptr(b.base))
		return
	}
	if b != nil && b.coming {
		_ = f.violate("Execute", "use before it is there: a %s on %s:%d@%#x", what, b.allocator, b.device, uintptr(b.base))
	}
	work()
}

func (f *fakeMemory) bytesAt(at backends.Address, size int) []byte {
	b := f.find(at)
	if b == nil || b.freed || int(at-b.base)+size > b.size {
		_ = f.violate("Execute", "%d bytes at %#x are not in one live block", size, at)
		return make([]byte, size)
	}
	if b.coming && f.executing {
		_ = f.violate("Execute", "%d bytes at %#x are used before they are there", size, at)
	}
	if f.executing && b.held(int(at-b.base), int(at-b.base)+size) != nil {
		_ = f.violate("Execute", "%d bytes at %#x are used while the host has them mapped", size, at)
	}
	return b.data[at-b.base:][:size]
}

// deviceOf returns the device to account an allocation to. Pinned memory may be
// asked for without a device.
func (f *fakeMemory) deviceOf(call string, a backends.Allocator, device int) (int, error) {
	if device == backends.HostDevice && a.Kind() == backends.Pinned {
		return 0, nil
	}
	return device, f.checkDevice(call, device)
}
