package backendtest

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
)

const (
	// Addresses from here on are outside the 48 bits that x86-64 and arm64
	// processes have: reading one ends the process.
	firstDeviceAddress = backends.Address(1) << 52
	guard              = 4096 // between blocks, so that running past one is noticed
	garbage            = 0xDB
	mostFreedBlocks    = 1 << 14 // how many are remembered, to tell double frees
)

// addressesUsed is shared by all fakes: an address is never used twice, and two
// backends never know the same one.
var addressesUsed atomic.Uint64

// block is one allocation.
type block struct {
	base      backends.Address
	size      int
	allocator backends.Allocator
	device    int // as requested
	data      []byte
	coming    bool // the stream that it is taken on has not come to it
	freeing   bool // Free was called
	freed     bool // and has run
	mapped    []mapped
	reach     int    // bytes that it has addresses for
	store     *store // of memory that grows, else nil
	shared    bool   // by descriptor
	locked    bool   // host memory of others: see LockHost
	readOnly  bool
}

func (b *block) kind() backends.MemoryKind { return b.allocator.Kind() }

// owner is the device whose default stream and context serve the block.
func (b *block) owner() int { return max(b.device, 0) }

// mapped is a part of a block that the host has.
type mapped struct {
	from, to int // bytes in the block
	write    bool
	host     []byte
}

// held returns the part that the host has of some bytes of the block, or nil.
func (b *block) held(from, to int) *mapped {
	for i := range b.mapped {
		if m := &b.mapped[i]; from < m.to && m.from < to {
			return m
		}
	}
	return nil
}

func addressOf(data []byte) backends.Address {
	return backends.Address(unsafe.Pointer(unsafe.SliceData(data)))
}

// store is memory that several blocks have at their addresses.
type store struct {
	bytes  int // of the largest
	blocks []*block
}

// leave removes a block, and returns how many bytes no other block has.
func (s *store) leave(b *block) int {
	s.blocks = slices.DeleteFunc(s.blocks, func(other *block) bool { return other == b })
	if len(s.blocks) > 0 {
		return 0
	}
	return s.bytes
}

// extend makes the memory and b size bytes large.
func (s *store) extend(b *block, size int) {
	if data := s.blocks[0].data; size > cap(data) {
		// It moves, to twice the room. All blocks still see the same bytes.
		larger := make([]byte, s.bytes, 2*size)
		for _, each := range s.blocks {
			copy(larger, each.data)
			each.data = larger[:each.size]
		}
	}
	b.data = s.blocks[0].data[:size]
	if size > s.bytes {
		spoil(b.data[s.bytes:])
	}
	b.size, s.bytes = size, max(s.bytes, size)
}

// memory is what a Region turned out to be.
type memory struct {
	block    *block // nil for host memory that the fake does not own
	offset   int
	size     int
	host     []byte
	pageable bool
}

func (m memory) bytes() []byte {
	if m.block == nil {
		return m.host
	}
	return m.block.data[m.offset : m.offset+m.size]
}

func describe(r backends.Region) string {
	return fmt.Sprintf("%s:%d@%#x", r.Allocator, r.Device, uintptr(r.Address))
}

// newAddresses returns where size bytes start that nobody has had.
func newAddresses(size int) backends.Address {
	room := (uint64(size)+guard-1)/guard*guard + guard
	return firstDeviceAddress + backends.Address(addressesUsed.Add(room)-room)
}

// spoil makes memory garbage.
func spoil(data []byte) {
	data[0] = garbage
	for done := 1; done < len(data); done *= 2 {
		copy(data[done:], data[:done])
	}
}

func byBase(b *block, at backends.Address) int { return cmp.Compare(b.base, at) }

// hostBytes views memory at a host address. The detour through a pointer to at
// keeps go vet content: the rule it checks is about Go memory.
func hostBytes(at backends.Address, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size)
}
