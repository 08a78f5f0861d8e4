package gobuffer

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/counts"
)

// piece is an array in some memory: what contents operations read and write.
type piece struct {
	memory  *Memory
	address backends.Address
	layout  arrayiface.Layout
	stream  backends.Stream // that of the Array it belongs to
	where   int             // see Array.where
	entered bool            // see enter
	stop    *backends.Stop  // see Array.Until
	locked  *served         // what it is to the operation, where somebody has page-locked it: see lockFor
}

func (p piece) onHost() bool { return p.memory == nil || p.memory.onHost }

func (p piece) pointer() unsafe.Pointer { return hostPointer(p.address) }

// hostPointer turns the address of C memory into a pointer. Go's collector does
// not move or own that memory, which is what makes the conversion sound.
func hostPointer(a backends.Address) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

func (p piece) region() backends.Region {
	r := p.memory.region
	r.Address = p.address
	if p.locked != nil {
		r.Allocator = p.locked.allocator
	}
	return r
}

// dense reports whether the elements fill their span, whichever index runs fastest.
func (p piece) dense() bool { return p.layout.ContiguousC() || p.layout.ContiguousF() }

func offset(a backends.Address, by int) backends.Address { return backends.Address(int(a) + by) }

// stopWith is what ends a movement between two pieces before its time; nil: nothing does.
func (p piece) stopWith(q piece) *backends.Stop {
	if p.stop != nil {
		return p.stop
	}
	return q.stop
}

// mayShare reports whether two pieces anywhere may share bytes.
func (p piece) mayShare(q piece) bool {
	if p.origin() == q.origin() && p.memory != q.memory {
		return true // in two address spaces, which cannot be compared
	}
	if p.onHost() && q.onHost() {
		return arrayiface.Overlap(uintptr(p.address), p.layout, uintptr(q.address), q.layout)
	}
	return !p.onHost() && !q.onHost() && p.overlaps(q)
}

// span is the bytes from p's lowest to its highest.
func (p piece) span() piece {
	low, high := p.layout.Span()
	p.address = offset(p.address, low)
	p.layout = arrayiface.Layout{Type: arrayiface.Uint8, Shape: []int{high - low}, Strides: []int{1}}
	return p
}

// overlaps reports whether two pieces that the host does not reach may share
// bytes: devices number their memory each for itself. Two runtimes may know one address.
func (p piece) overlaps(q piece) bool {
	if p.memory.backend == q.memory.backend {
		if p.memory.region.Device != q.memory.region.Device {
			return false
		}
	} else if !p.memory.mayBe(q.memory) {
		return false
	}
	return arrayiface.Overlap(uintptr(p.address), p.layout, uintptr(q.address), q.layout)
}

// mayBe reports whether code of both runtimes may reach the one's memory and the other's.
func (m *Memory) mayBe(other *Memory) bool {
	reaches := func(a backends.Allocator, b backends.Backend) bool {
		s, err := backends.ParseSpace(b.Name())
		return err == nil && a.SharedWith(s)
	}
	return reaches(m.region.Allocator, other.backend) || reaches(other.region.Allocator, m.backend)
}

// origin is the memory that p's is, or is the host's view of.
func (p piece) origin() *Memory {
	if p.memory != nil && p.memory.mapping != nil {
		return p.memory.mapping.home
	}
	return p.memory
}

// claims are the elements that accesses have, of all memory of a Runtime.
type claims struct {
	writing atomic.Int64 // claims that write, so that changes need not look when there are none
	all     atomic.Int64 // claims: see Runtime.Words
	mutex   sync.Mutex
	list    []*claim
	last    uint32 // number
}

// claim is that of one access. It holds no reference: whoever has it does.
type claim struct {
	piece
	mode   Mode
	number uint32 // what is made of the access's elements has it, see Array.holder
	within uint32 // that of the access whose elements these were before, or 0
	// The right elements are elsewhere. Else they are where they were, and whoever has the
	// same bytes by another Memory may have them from the access itself, by another library.
	temporary bool
}

// kept are the temporaries of Cached arrays, of all memory of a Runtime.
type kept struct {
	some   atomic.Int64 // how many, so that changes need not look where there are none
	mutex  sync.Mutex
	list   []*keeping
	reused [allocatorSlots]counts.Tally // by the temporaries' allocators
}

// keeping is a temporary of some elements or, until it is made, that somebody makes it.
type keeping struct {
	source piece // without a reference: it ends with the memory
	space  backends.Space
	device int
	made   piece // its elements, with a reference; without memory until they are there
}

// pauses are the tags of a Runtime.
type pauses struct {
	ever  atomic.Int64 // tags: see PausableWord
	mutex sync.Mutex
	known []backends.Tag
}

// bytes returns how many bytes are kept in memory of an allocator.
func (k *kept) bytes(a backends.Allocator) (size int64) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, e := range k.list {
		if m := e.made.memory; m != nil && m.region.Allocator == a {
			size += int64(m.Size())
		}
	}
	return size
}

// hostBytes is host memory as a slice.
func hostBytes(at backends.Address, size int) []byte {
	return unsafe.Slice((*byte)(hostPointer(at)), size)
}
