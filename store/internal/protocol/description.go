package protocol

import (
	"fmt"

	"hamr/arrayiface"
	"hamr/backends"
)

// Description says what an object is.
type Description struct {
	Type  arrayiface.ElementType
	Shape []int
	// Allocator says whose memory it is in: any of the host's, or one of a runtime whose memory
	// can be shared by descriptor.
	Allocator backends.Allocator
	Device    int    // ignored for host memory
	Metadata  []byte // JSON of at most the server's MaxMetadata, or nothing
	// Evictable lets the server delete it, sealed and while nobody has it, when room is needed.
	Evictable bool
	// Pinned keeps it from being evicted or spilled.
	Pinned bool
	// Separate gives it memory of its own, however small. Small objects lie in memory that their
	// maker has mapped for writing as long as it lives, and nobody else ever has.
	Separate bool
	// Session deletes it when the session that makes it ends, however that ends. Processes that have leases keep it.
	Session bool
}

const (
	FlagEvictable uint8 = 1 << iota
	FlagPinned
	FlagSeparate
	FlagSealed
	FlagUnsafe
	FlagNeeded  // the client has the memory not mapped
	flagForGood // nobody can write any more
	FlagSession
	AllFlags = FlagEvictable | FlagPinned | FlagSeparate | FlagSession
)

func EncodeLayout(e *Encoder, t arrayiface.ElementType, shape []int) {
	e.Text(t.String())
	e.U8(uint8(len(shape)))
	for _, n := range shape {
		e.U64(uint64(n))
	}
}

func DecodeLayout(d *Decoder) (layout arrayiface.Layout, raw []byte) {
	start := d.Rest
	name := d.Text()
	shape := make([]int, d.U8())
	for i := range shape {
		shape[i] = d.Size()
	}
	if d.Broken != "" {
		return layout, nil
	}
	t, err := arrayiface.ParseName(name)
	if err == nil && t.String() != name {
		err = fmt.Errorf("element type %q", name)
	}
	if err == nil {
		layout, err = arrayiface.NewLayout(t, shape, nil)
	}
	if err != nil {
		d.Fail("an array: %v", err)
		return layout, nil
	}
	return layout, start[:len(start)-len(d.Rest)]
}

// Told is what an object is, as packets tell of it.
type Told struct {
	Device   backends.UUID // zero is the host
	Bytes    int64
	Layout   []byte // element type and shape, as on the wire
	Metadata []byte
	Sealed   bool
	Evicts   bool
	Pinned   bool
}

// EncodeTold appends what an object is, beside where its memory is.
func EncodeTold(e *Encoder, o *Told) {
	var flags uint8
	if o.Evicts {
		flags |= FlagEvictable
	}
	if o.Pinned {
		flags |= FlagPinned
	}
	if o.Sealed {
		flags |= FlagSealed
	}
	e.U8(flags)
	e.ID(ID(o.Device))
	e.U64(uint64(o.Bytes))
	e.Bytes = append(e.Bytes, o.Layout...)
	e.Blob(o.Metadata)
}

// Info is what is known of an object without its memory.
type Info struct {
	ID       ID
	Layout   arrayiface.Layout
	Bytes    int64
	Device   backends.UUID // zero is the host
	Metadata []byte
	Names    []string
	Sealed   bool
	Evictable,
	Pinned bool
	Leases int // of all processes
}

func DecodeInfo(d *Decoder, id ID) (i Info) {
	flags := d.U8()
	i.ID, i.Sealed = id, flags&FlagSealed != 0
	i.Evictable, i.Pinned = flags&FlagEvictable != 0, flags&FlagPinned != 0
	i.Device = backends.UUID(d.ID())
	i.Bytes = int64(d.Size())
	i.Layout, _ = DecodeLayout(d)
	i.Metadata = append([]byte(nil), d.Blob()...)
	return i
}

func DecodeListed(d *Decoder) Info {
	i := DecodeInfo(d, d.ID())
	i.Leases = int(d.U32())
	for range d.Count(4) {
		i.Names = append(i.Names, d.Text())
	}
	return i
}

// Filters of a list.
const (
	ListSealed uint8 = 1 << iota
	ListUnsealed
	ListNamed // those alone that have a name with the prefix
)

// Where an object's memory is.
const (
	Nowhere uint8 = iota // it has no bytes
	OwnMemory
	InSlab
	OnDevice // the maker has to make it and attach it
)

// MostLeases is how many leases of one object are counted for a session: what a release can name. Those beyond end
// with these.
const MostLeases = 1<<32 - 1
