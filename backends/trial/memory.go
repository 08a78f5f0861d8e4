//go:build trial

package trial

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"hamr/backends"
)

const (
	// Opaque addresses are numbers from here on, which no processor takes for addresses.
	firstAddress = backends.Address(1) << 56
	page         = 4096 // and what lies between allocations
	garbage      = 0xBD
	firstHandle  = 0x7A1A0000
	mostBlocks   = 1 << 14 // that are remembered, those that were freed included
)

// addressesUsed is of the whole process: no number is given out twice.
var addressesUsed, blocksMade atomic.Uint64

// block is an allocation: bytes that the devices use, and what the host has of them.
type block struct {
	base      backends.Address
	size      int
	allocator backends.Allocator
	device    int
	handle    uintptr
	data      []byte
	shared    []byte // of TrialSVM: where the host finds it, closed to the host but while it is mapped
	old       []byte // where the host found it last
	mapped    []window
	freed     bool
}

// window is a part that the host has mapped. It uses a copy, as on a device with memory of its own.
type window struct {
	part
	write bool
	host  []byte
}

// part is bytes of a block or, if that is nil, of the host.
type part struct {
	block *block
	from  int
	size  int
	host  backends.Address
	lent  *block // whose mapped memory the host's is, or nil
}

func (p part) bytes() []byte {
	if p.block == nil {
		return hostBytes(p.host, p.size)
	}
	return p.block.data[p.from:][:p.size]
}

// shares reports whether p and q are bytes of one block, and some are the same.
func (p part) shares(q part) bool {
	return p.block != nil && p.block == q.block && p.from < q.from+q.size && q.from < p.from+p.size
}

func (k *block) whole() part { return part{block: k, size: k.size} }

func (b *Backend) newBlock(r backends.Request) (*block, error) {
	k := &block{size: r.Size, allocator: r.Allocator, device: r.Device, handle: uintptr(firstHandle + blocksMade.Add(1)),
		data: bytes.Repeat([]byte{garbage}, r.Size)}
	room := (r.Size + 2*page - 1) / page * page
	if r.Allocator.Facts().Opaque {
		k.base = firstAddress + backends.Address(addressesUsed.Add(uint64(room))) - backends.Address(room)
	} else {
		var err error
		if k.shared, err = mmap(room, syscall.PROT_NONE); err != nil {
			return nil, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size, Detail: err.Error()}
		}
		k.base = addressOf(k.shared)
	}
	if len(b.blocks) > mostBlocks {
		b.blocks = slices.DeleteFunc(b.blocks, func(k *block) bool { return k.freed })
	}
	// The system gives the addresses of what was freed again.
	i, _ := slices.BinarySearchFunc(b.blocks, k.base, byBase)
	behind, _ := slices.BinarySearchFunc(b.blocks, k.base+backends.Address(room), byBase)
	b.blocks = slices.Replace(b.blocks, i, behind, k)
	return k, nil
}

// release takes the memory away, also from the host.
func (k *block) release() error {
	k.freed, k.data = true, nil
	return errors.Join(munmap(k.shared), munmap(k.old))
}

func byBase(k *block, at backends.Address) int { return cmp.Compare(k.base, at) }

// find returns the block that at lies in, or nil.
func (b *Backend) find(at backends.Address) *block {
	i, found := slices.BinarySearchFunc(b.blocks, at, byBase)
	if !found {
		i--
	}
	if i < 0 || at >= b.blocks[i].base+backends.Address(b.blocks[i].size) {
		return nil
	}
	return b.blocks[i]
}

// part checks that work on size bytes at r may be enqueued.
func (b *Backend) part(call string, r backends.Region, size int) (part, error) {
	if r.Allocator.Backend() != name {
		p := part{host: r.Address, size: size}
		if k := b.find(r.Address); k != nil && !k.freed {
			p.lent = k
		}
		if r.Address >= firstAddress || r.Device != backends.HostDevice || !p.isHosts() {
			return part{}, b.violate(call, "%s is no host memory", describe(r))
		}
		return p, nil
	}
	k := b.find(r.Address)
	if k == nil || k.freed || k.allocator != r.Allocator || k.device != r.Device || int(r.Address-k.base)+size > k.size {
		return part{}, b.violate(call, "%s has no %d bytes", describe(r), size)
	}
	p := part{block: k, from: int(r.Address - k.base), size: size}
	if k.window(p) != nil {
		return part{}, b.violate(call, "%s is mapped", describe(r))
	}
	return p, nil
}

// isHosts reports whether the host may use a part that is said to be its own.
func (p part) isHosts() bool {
	if p.lent == nil {
		return true
	}
	from := int(p.host - p.lent.base)
	w := p.lent.window(part{block: p.lent, from: from, size: p.size})
	return w != nil && w.from <= from && from+p.size <= w.from+w.size
}

// window is what the host has of a part, or nil.
func (k *block) window(p part) *window {
	i := slices.IndexFunc(k.mapped, func(w window) bool { return w.shares(p) })
	if i < 0 {
		return nil
	}
	return &k.mapped[i]
}

// Locate knows what is allocated.
func (b *Backend) Locate(at backends.Address) (backends.Location, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := backends.Location{Region: backends.Region{Address: at, Allocator: backends.None, Device: backends.HostDevice}}
	if err := b.enter("Locate"); err != nil {
		return found, err
	}
	if k := b.find(at); k != nil && !k.freed {
		found.Allocator, found.Device, found.Base, found.Size = k.allocator, k.device, k.base, k.size
	}
	return found, nil
}

// NativeHandle returns a number that means the allocation to nobody but this package.
func (b *Backend) NativeHandle(at backends.Region) (handle uintptr, offset int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("NativeHandle"); err != nil {
		return 0, 0, err
	}
	k := b.find(at.Address)
	if k == nil || k.freed || !k.allocator.Facts().Opaque {
		return 0, 0, b.violate("NativeHandle", "%s has none", describe(at))
	}
	return k.handle, int(at.Address - k.base), nil
}

func mmap(size, protection int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, protection, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func munmap(data []byte) error {
	if data == nil {
		return nil
	}
	return syscall.Munmap(data)
}

func addressOf(data []byte) backends.Address {
	return backends.Address(unsafe.Pointer(unsafe.SliceData(data)))
}

func hostBytes(at backends.Address, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size)
}
