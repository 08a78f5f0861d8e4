package protocol

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// Encoder appends fields to a packet.
type Encoder struct{ Bytes []byte }

func (e *Encoder) U8(v uint8)   { e.Bytes = append(e.Bytes, v) }
func (e *Encoder) u16(v uint16) { e.Bytes = binary.LittleEndian.AppendUint16(e.Bytes, v) }
func (e *Encoder) U32(v uint32) { e.Bytes = binary.LittleEndian.AppendUint32(e.Bytes, v) }
func (e *Encoder) U64(v uint64) { e.Bytes = binary.LittleEndian.AppendUint64(e.Bytes, v) }
func (e *Encoder) ID(v ID)      { e.Bytes = append(e.Bytes, v[:]...) }

func (e *Encoder) Flag(v bool) {
	if v {
		e.U8(1)
	} else {
		e.U8(0)
	}
}

func (e *Encoder) Blob(v []byte) {
	e.U32(uint32(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

func (e *Encoder) Text(v string) {
	e.U32(uint32(len(v)))
	e.Bytes = append(e.Bytes, v...)
}

// Begin appends a frame's header and returns where it is, for end.
func (e *Encoder) Begin(operation, status uint16, request uint64) (at int) {
	at = len(e.Bytes)
	e.U32(0)
	e.u16(operation)
	e.u16(status)
	e.U64(request)
	return at
}

func (e *Encoder) End(at int) {
	binary.LittleEndian.PutUint32(e.Bytes[at:], uint32(len(e.Bytes)-at-HeaderBytes))
}

// Decoder reads fields of a payload. After the first that is not there it returns zeros, and
// done tells.
type Decoder struct {
	Rest   []byte
	Broken string // what is wrong
}

func (d *Decoder) take(n int, what string) []byte {
	if n < 0 || n > len(d.Rest) {
		if d.Broken == "" {
			d.Broken = fmt.Sprintf("%s of %d bytes, where %d are left", what, n, len(d.Rest))
		}
		d.Rest = nil
		return nil
	}
	taken := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return taken
}

func (d *Decoder) U8() uint8 {
	if b := d.take(1, "a byte"); b != nil {
		return b[0]
	}
	return 0
}

func (d *Decoder) U32() uint32 {
	if b := d.take(4, "an integer"); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *Decoder) U64() uint64 {
	if b := d.take(8, "an integer"); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Size reads a number of bytes or elements, which fits an int.
func (d *Decoder) Size() int {
	v := d.U64()
	if v > math.MaxInt64 {
		d.Fail("a size of %d", v)
		return 0
	}
	return int(v)
}

func (d *Decoder) ID() (id ID) {
	copy(id[:], d.take(len(id), "an id"))
	return id
}

func (d *Decoder) Flag() bool {
	v := d.U8()
	if v > 1 {
		d.Fail("a flag of %d", v)
	}
	return v == 1
}

// Blob returns bytes of the packet itself.
func (d *Decoder) Blob() []byte { return d.take(int(d.U32()), "a field") }

func (d *Decoder) Text() string { return string(d.Blob()) }

// Count reads how many items of at least some bytes each follow.
func (d *Decoder) Count(each int) int {
	n := int(d.U32())
	if n > len(d.Rest)/each {
		d.Fail("%d items of %d bytes, where %d are left", n, each, len(d.Rest))
		return 0
	}
	return n
}

func (d *Decoder) Fail(format string, arguments ...any) {
	if d.Broken == "" {
		d.Broken = fmt.Sprintf(format, arguments...)
	}
	d.Rest = nil
}

// Done returns an error unless all fields were there, and nothing else.
func (d *Decoder) Done() error {
	if d.Broken == "" && len(d.Rest) > 0 {
		d.Broken = fmt.Sprintf("%d bytes behind the last field", len(d.Rest))
	}
	if d.Broken != "" {
		return &ProtocolError{d.Broken}
	}
	return nil
}

func (d *Decoder) Name() string {
	name := d.Text()
	if d.Broken == "" && (name == "" || len(name) > MostName || !utf8.ValidString(name)) {
		d.Fail("a name of %d bytes: accepted are 1 to %d, of UTF-8", len(name), MostName)
	}
	return name
}
