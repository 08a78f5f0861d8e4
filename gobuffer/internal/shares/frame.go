package shares

import (
	"crypto/rand"
	"encoding/binary"

	"hamr/arrayiface"
	"hamr/backends"
)

// The ways to memory, and what a frame says of it.
const (
	wayNothing       = iota // no elements
	wayDescriptor           // mapped by a descriptor
	wayPool                 // of a pool, by a descriptor of that; a lease's comes second
	wayAllocation           // of the runtime's; a lease's descriptor
	ways                    // how many there are
	flagReadOnly     = 1
	flagCopied       = 2
	magic            = "hamrshr\x01"
	headerSize       = 16
	maximumFrame     = 4096
	maximumExtent    = 1 << 48 // bytes: what addresses have
	maximumExported  = 128
	maximumElement   = 32
	descriptorsOfWay = "\x00\x01\x02\x01"
)

// Frame is what a receiver is told. Numbers are little-endian.
type Frame struct {
	ReadOnly  bool
	Copied    bool
	Allocator backends.Allocator // which backend it is
	Total     int                // bytes of what is mapped, or of the allocation as far as it matters
	Offset    int                // bytes in front of the elements
	Size      int                // bytes of the elements
	First     int                // where in them the first one is
	Device    backends.UUID      // zero is the host
	Layout    arrayiface.Layout
	way       int
	share     id // of a lease
	pool      id
	exported  []byte
	note      note // of a lease
}

// Empty reports whether there are no elements, and so no memory.
func (f *Frame) Empty() bool { return f.way == wayNothing }

// OnHost reports whether no device has the memory.
func (f *Frame) OnHost() bool { return f.Device == backends.UUID{} }

// Mapped reports whether the memory is mapped by the descriptor that goes with the frame.
func (f *Frame) Mapped() bool { return f.way == wayDescriptor }

// Lent reports whether a lease's descriptor goes with the frame.
func (f *Frame) Lent() bool { return f.way == wayPool || f.way == wayAllocation }

// Encode returns the bytes that are sent.
func (f *Frame) Encode() []byte {
	name := f.Layout.Type.String()
	flags := byte(0)
	if f.ReadOnly {
		flags |= flagReadOnly
	}
	if f.Copied {
		flags |= flagCopied
	}
	b := append(make([]byte, 0, 256), magic...)
	b = append(b, byte(f.way), flags, descriptorsOfWay[f.way], byte(len(f.Layout.Shape)))
	b = append(b, 0, 0, byte(f.Allocator), 0)
	b = append(append(append(b, f.share[:]...), f.Device[:]...), f.pool[:]...)
	for _, n := range []int{f.Total, f.Offset, f.Size, f.First} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(b, byte(len(name))), name...)
	b = append(append(b, byte(len(f.exported))), f.exported...)
	for _, list := range [][]int{f.Layout.Shape, f.Layout.Strides} {
		for _, n := range list {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	if f.Lent() {
		b = binary.LittleEndian.AppendUint64(append(b, f.note.maker[:]...), uint64(f.note.slot))
		b = binary.LittleEndian.AppendUint64(b, f.note.generation)
	}
	binary.LittleEndian.PutUint16(b[12:], uint16(len(b)))
	return b
}

// id names a share, a pool or a maker of shares.
type id [16]byte

func newID() (made id) {
	_, _ = rand.Read(made[:]) // it never fails
	return made
}

// note is what a frame says of where its lease is noted.
type note struct {
	maker      id
	slot       int // 0 is none
	generation uint64
}

// share is an id that no other share has: makers' are random, and generations their own.
func (n note) share() (made id) {
	made = n.maker
	for i := range 8 {
		made[i] ^= byte(n.generation >> (8 * i))
	}
	return made
}
