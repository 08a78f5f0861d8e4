package gobuffer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
)

// The ways to memory, and what a frame says of it.
const (
	shareNothing     = iota // no elements
	shareDescriptor         // mapped by a descriptor
	sharePool               // of a pool, by a descriptor of that; a lease's comes second
	shareAllocation         // of the runtime's; a lease's descriptor
	shareWays               // how many there are
	shareReadOnly    = 1
	shareCopied      = 2
	shareMagic       = "hamrshr\x01"
	shareHeader      = 16
	maximumFrame     = 4096
	mostDescriptors  = 2
	maximumExtent    = 1 << 48 // bytes: what addresses have
	maximumExported  = 128
	maximumElement   = 32
	descriptorsOfWay = "\x00\x01\x02\x01"
)

type shareID [16]byte

// shareFrame is what a receiver is told. Numbers are little-endian.
type shareFrame struct {
	way       int
	readOnly  bool
	copied    bool
	allocator backends.Allocator // which backend it is
	share     shareID            // of a lease
	device    backends.UUID      // zero is the host
	pool      shareID
	total     int // bytes of what is mapped, or of the allocation as far as it matters
	offset    int // bytes in front of the elements
	size      int // bytes of the elements
	first     int // where in them the first one is
	exported  []byte
	layout    arrayiface.Layout
	note      leaseNote // of a lease
}

// shared makes what is sent of a frame; the descriptors are its own from now on.
func (f *shareFrame) shared(descriptors []int) (*Shared, error) {
	return &Shared{frame: f.encode(), descriptors: descriptors, copied: f.copied, readOnly: f.readOnly, lent: f.lent()}, nil
}

// ofDescriptor takes the descriptor over.
func (f *shareFrame) ofDescriptor(r *Runtime, at backends.Region, d *Descriptor, start int) (made *Shared, err error) {
	descriptor := d.Number
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(descriptor))
		}
	}()
	f.way, f.allocator, f.total, f.offset = shareDescriptor, at.Allocator, d.Size, start
	f.readOnly = f.readOnly || d.ReadOnly
	if f.device, err = r.deviceID(at); err != nil {
		return nil, err
	}
	if f.readOnly && at.Device == backends.HostDevice {
		readable, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", descriptor), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("descriptor %d for reading only: %w", descriptor, err)
		}
		err = unix.Close(descriptor)
		if descriptor = readable; err != nil {
			return nil, err
		}
	}
	return f.shared([]int{descriptor})
}

// ofPool is for memory that the pool's backend has allocated: it starts where that said.
func (f *shareFrame) ofPool(r *Runtime, s backends.PoolSharer, m *Memory, start backends.Address) (descriptors []int, err error) {
	p, err := r.sharedPool(s, m.region)
	if err != nil {
		return nil, err
	}
	if f.exported, err = s.ExportAllocated(m.region); err != nil {
		return nil, err
	}
	f.way, f.allocator, f.device, f.pool = sharePool, m.region.Allocator, p.device, p.id
	f.offset = int(start - m.region.Address)
	f.total = f.offset + f.size
	descriptor, err := duplicate(p.descriptor)
	return []int{descriptor}, err
}

func (f *shareFrame) ofAllocation(r *Runtime, m *Memory, start backends.Address) (err error) {
	s, able := backends.As[backends.AllocationSharer](m.backend)
	if !able {
		return cannotShare("it is none that others can map or import")
	}
	if f.device, err = r.deviceID(m.region); err != nil {
		return err
	}
	at := m.region
	at.Address = start
	f.exported, f.offset, err = s.ExportAllocation(at)
	f.way, f.allocator, f.total = shareAllocation, m.region.Allocator, f.offset+f.size
	return err
}

// lent reports whether a lease's descriptor goes with the frame.
func (f *shareFrame) lent() bool { return f.way == sharePool || f.way == shareAllocation }

func (f *shareFrame) encode() []byte {
	name := f.layout.Type.String()
	flags := byte(0)
	if f.readOnly {
		flags |= shareReadOnly
	}
	if f.copied {
		flags |= shareCopied
	}
	b := append(make([]byte, 0, 256), shareMagic...)
	b = append(b, byte(f.way), flags, descriptorsOfWay[f.way], byte(len(f.layout.Shape)))
	b = append(b, 0, 0, byte(f.allocator), 0)
	b = append(append(append(b, f.share[:]...), f.device[:]...), f.pool[:]...)
	for _, n := range []int{f.total, f.offset, f.size, f.first} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(b, byte(len(name))), name...)
	b = append(append(b, byte(len(f.exported))), f.exported...)
	for _, list := range [][]int{f.layout.Shape, f.layout.Strides} {
		for _, n := range list {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	if f.lent() {
		b = binary.LittleEndian.AppendUint64(append(b, f.note.maker[:]...), uint64(f.note.slot))
		b = binary.LittleEndian.AppendUint64(b, f.note.generation)
	}
	binary.LittleEndian.PutUint16(b[12:], uint16(len(b)))
	return b
}

func badFrame(format string, a ...any) error {
	return valueError("frame", fmt.Sprintf(format, a...), "what Array.Share has made, of this version of hamr")
}

// FrameLength returns how long a frame of Shared is, of which the first 16 bytes were read, and how many
// descriptors go with it, for transports that do not keep messages apart. The error is an *ArgumentError where
// it is no frame.
func FrameLength(header []byte) (length, descriptors int, err error) {
	if len(header) < shareHeader || string(header[:len(shareMagic)]) != shareMagic {
		return 0, 0, badFrame("%d bytes that begin with %q", len(header), header[:min(len(header), len(shareMagic))])
	}
	way := int(header[8])
	length = int(binary.LittleEndian.Uint16(header[12:]))
	switch {
	case way >= shareWays:
		return 0, 0, badFrame("a way %d", way)
	case length < shareHeader || length > maximumFrame:
		return 0, 0, badFrame("%d bytes long", length)
	case header[10] != descriptorsOfWay[way]:
		return 0, 0, badFrame("one of %d descriptors by way %d", header[10], way)
	case header[9]&^(shareReadOnly|shareCopied) != 0 || header[15] != 0:
		return 0, 0, badFrame("one with flags %#x, %#x", header[9], header[15])
	}
	return length, int(header[10]), nil
}

// frameReader takes a frame apart; once there was too little, there is nothing.
type frameReader struct {
	rest  []byte
	short bool
}

func (r *frameReader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return make([]byte, n)
	}
	found := r.rest[:n]
	r.rest = r.rest[n:]
	return found
}

func (r *frameReader) number() int { return int(int64(binary.LittleEndian.Uint64(r.bytes(8)))) }

func (r *frameReader) text(most int) []byte {
	n := int(r.bytes(1)[0])
	if n > most {
		r.short = true
		return nil
	}
	return r.bytes(n)
}

// decodeShare refuses what does not fit together.
func decodeShare(frame []byte) (*shareFrame, error) {
	length, _, err := FrameLength(frame)
	if err != nil {
		return nil, err
	}
	if length != len(frame) {
		return nil, badFrame("%d bytes where it says %d", len(frame), length)
	}
	f := &shareFrame{way: int(frame[8]), readOnly: frame[9]&shareReadOnly != 0, copied: frame[9]&shareCopied != 0, allocator: backends.Allocator(frame[14])}
	ndim := int(frame[11])
	if ndim > arrayiface.MaxDimensions {
		return nil, badFrame("one of %d dimensions", ndim)
	}
	r := &frameReader{rest: frame[shareHeader:]}
	copy(f.share[:], r.bytes(16))
	copy(f.device[:], r.bytes(16))
	copy(f.pool[:], r.bytes(16))
	f.total, f.offset, f.size, f.first = r.number(), r.number(), r.number(), r.number()
	name := string(r.text(maximumElement))
	f.exported = r.text(maximumExported)
	lists := [2][]int{make([]int, ndim), make([]int, ndim)}
	for _, list := range lists {
		for i := range list {
			list[i] = r.number()
		}
	}
	if f.lent() {
		copy(f.note.maker[:], r.bytes(16))
		f.note.slot, f.note.generation = r.number(), uint64(r.number())
	}
	if r.short || len(r.rest) > 0 {
		return nil, badFrame("%d bytes, which is too short or too long", len(frame))
	}
	element, err := arrayiface.ParseName(name)
	if err != nil || element.String() != name {
		return nil, badFrame("one of type %q", name)
	}
	if f.layout, err = arrayiface.NewLayout(element, lists[0], lists[1]); err != nil {
		return nil, badFrame("one of shape %v and strides %v: %v", lists[0], lists[1], err)
	}
	return f, f.check()
}

// check has the elements lie where the frame says that memory is.
func (f *shareFrame) check() error {
	if !f.allocator.Valid() || f.allocator == backends.None {
		return badFrame("memory of allocator %d", int(f.allocator))
	}
	count := f.layout.Count()
	if f.way == shareNothing {
		if count != 0 {
			return badFrame("no memory for %d elements", count)
		}
		return nil
	}
	for _, n := range []int{f.total, f.offset, f.size, f.first} {
		if n < 0 || n > maximumExtent {
			return badFrame("one of memory of %d bytes", n)
		}
	}
	low, high := f.layout.Span()
	if count == 0 || f.offset+f.size > f.total || f.first+low < 0 || f.first+high > f.size {
		return badFrame("bytes %d … %d from %d on of %d at %d in %d, which does not fit", low, high, f.first, f.size, f.offset, f.total)
	}
	if (f.device == backends.UUID{}) != (f.allocator.Kind() == backends.Pageable) {
		return badFrame("memory of allocator %s on device %s", f.allocator, f.device)
	}
	return nil
}
