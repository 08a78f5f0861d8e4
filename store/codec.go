package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// encoder appends fields to a packet.
type encoder struct{ bytes []byte }

func (e *encoder) u8(v uint8)   { e.bytes = append(e.bytes, v) }
func (e *encoder) u16(v uint16) { e.bytes = binary.LittleEndian.AppendUint16(e.bytes, v) }
func (e *encoder) u32(v uint32) { e.bytes = binary.LittleEndian.AppendUint32(e.bytes, v) }
func (e *encoder) u64(v uint64) { e.bytes = binary.LittleEndian.AppendUint64(e.bytes, v) }
func (e *encoder) id(v ID)      { e.bytes = append(e.bytes, v[:]...) }

func (e *encoder) flag(v bool) {
	if v {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

func (e *encoder) blob(v []byte) {
	e.u32(uint32(len(v)))
	e.bytes = append(e.bytes, v...)
}

func (e *encoder) text(v string) {
	e.u32(uint32(len(v)))
	e.bytes = append(e.bytes, v...)
}

// begin appends a frame's header and returns where it is, for end.
func (e *encoder) begin(operation, status uint16, request uint64) (at int) {
	at = len(e.bytes)
	e.u32(0)
	e.u16(operation)
	e.u16(status)
	e.u64(request)
	return at
}

func (e *encoder) end(at int) {
	binary.LittleEndian.PutUint32(e.bytes[at:], uint32(len(e.bytes)-at-headerBytes))
}

// decoder reads fields of a payload. After the first that is not there it returns zeros, and
// done tells.
type decoder struct {
	rest   []byte
	broken string // what is wrong
}

func (d *decoder) take(n int, what string) []byte {
	if n < 0 || n > len(d.rest) {
		if d.broken == "" {
			d.broken = fmt.Sprintf("%s of %d bytes, where %d are left", what, n, len(d.rest))
		}
		d.rest = nil
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) u8() uint8 {
	if b := d.take(1, "a byte"); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4, "an integer"); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8, "an integer"); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// size reads a number of bytes or elements, which fits an int.
func (d *decoder) size() int {
	v := d.u64()
	if v > math.MaxInt64 {
		d.fail("a size of %d", v)
		return 0
	}
	return int(v)
}

func (d *decoder) id() (id ID) {
	copy(id[:], d.take(len(id), "an id"))
	return id
}

func (d *decoder) flag() bool {
	v := d.u8()
	if v > 1 {
		d.fail("a flag of %d", v)
	}
	return v == 1
}

// blob returns bytes of the packet itself.
func (d *decoder) blob() []byte { return d.take(int(d.u32()), "a field") }

func (d *decoder) text() string { return string(d.blob()) }

// count reads how many items of at least some bytes each follow.
func (d *decoder) count(each int) int {
	n := int(d.u32())
	if n > len(d.rest)/each {
		d.fail("%d items of %d bytes, where %d are left", n, each, len(d.rest))
		return 0
	}
	return n
}

func (d *decoder) fail(format string, arguments ...any) {
	if d.broken == "" {
		d.broken = fmt.Sprintf(format, arguments...)
	}
	d.rest = nil
}

// done returns an error unless all fields were there, and nothing else.
func (d *decoder) done() error {
	if d.broken == "" && len(d.rest) > 0 {
		d.broken = fmt.Sprintf("%d bytes behind the last field", len(d.rest))
	}
	if d.broken != "" {
		return &ProtocolError{d.broken}
	}
	return nil
}

func (d *decoder) name() string {
	name := d.text()
	if d.broken == "" && (name == "" || len(name) > mostName || !utf8.ValidString(name)) {
		d.fail("a name of %d bytes: accepted are 1 to %d, of UTF-8", len(name), mostName)
	}
	return name
}
