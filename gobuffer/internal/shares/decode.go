package shares

import (
	"encoding/binary"
	"fmt"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/failures"
)

func badFrame(format string, a ...any) error {
	return failures.Value("frame", fmt.Sprintf(format, a...), "what Array.Share has made, of this version of hamr")
}

// FrameLength is documented as gobuffer.FrameLength.
func FrameLength(header []byte) (length, descriptors int, err error) {
	if len(header) < headerSize || string(header[:len(magic)]) != magic {
		return 0, 0, badFrame("%d bytes that begin with %q", len(header), header[:min(len(header), len(magic))])
	}
	way := int(header[8])
	length = int(binary.LittleEndian.Uint16(header[12:]))
	switch {
	case way >= ways:
		return 0, 0, badFrame("a way %d", way)
	case length < headerSize || length > maximumFrame:
		return 0, 0, badFrame("%d bytes long", length)
	case header[10] != descriptorsOfWay[way]:
		return 0, 0, badFrame("one of %d descriptors by way %d", header[10], way)
	case header[9]&^(flagReadOnly|flagCopied) != 0 || header[15] != 0:
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

// Decode reads a frame that so many descriptors have come with. It refuses what does not fit together.
func Decode(frame []byte, descriptors int) (*Frame, error) {
	length, _, err := FrameLength(frame)
	if err != nil {
		return nil, err
	}
	if length != len(frame) {
		return nil, badFrame("%d bytes where it says %d", len(frame), length)
	}
	f := &Frame{way: int(frame[8]), ReadOnly: frame[9]&flagReadOnly != 0, Copied: frame[9]&flagCopied != 0,
		Allocator: backends.Allocator(frame[14])}
	ndim := int(frame[11])
	if ndim > arrayiface.MaxDimensions {
		return nil, badFrame("one of %d dimensions", ndim)
	}
	r := &frameReader{rest: frame[headerSize:]}
	copy(f.share[:], r.bytes(16))
	copy(f.Device[:], r.bytes(16))
	copy(f.pool[:], r.bytes(16))
	f.Total, f.Offset, f.Size, f.First = r.number(), r.number(), r.number(), r.number()
	name := string(r.text(maximumElement))
	f.exported = r.text(maximumExported)
	lists := [2][]int{make([]int, ndim), make([]int, ndim)}
	for _, list := range lists {
		for i := range list {
			list[i] = r.number()
		}
	}
	if f.Lent() {
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
	if f.Layout, err = arrayiface.NewLayout(element, lists[0], lists[1]); err != nil {
		return nil, badFrame("one of shape %v and strides %v: %v", lists[0], lists[1], err)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if want := int(descriptorsOfWay[f.way]); descriptors != want {
		return nil, failures.Value("descriptors", descriptors, fmt.Sprintf("the %d that go with the frame", want))
	}
	return f, nil
}

// check has the elements lie where the frame says that memory is.
func (f *Frame) check() error {
	if !f.Allocator.Valid() || f.Allocator == backends.None {
		return badFrame("memory of allocator %d", int(f.Allocator))
	}
	count := f.Layout.Count()
	if f.way == wayNothing {
		if count != 0 {
			return badFrame("no memory for %d elements", count)
		}
		return nil
	}
	for _, n := range []int{f.Total, f.Offset, f.Size, f.First} {
		if n < 0 || n > maximumExtent {
			return badFrame("one of memory of %d bytes", n)
		}
	}
	low, high := f.Layout.Span()
	if count == 0 || f.Offset+f.Size > f.Total || f.First+low < 0 || f.First+high > f.Size {
		return badFrame("bytes %d … %d from %d on of %d at %d in %d, which does not fit", low, high, f.First, f.Size,
			f.Offset, f.Total)
	}
	if (f.Device == backends.UUID{}) != (f.Allocator.Kind() == backends.Pageable) {
		return badFrame("memory of allocator %s on device %s", f.Allocator, f.Device)
	}
	return nil
}
