package gobuffer

import "fmt"

// Mode says what code does with the elements that AccessMode gives it.
type Mode int32

// The modes, which Python calls "r", "w" and "rw".
const (
	// Read changes none.
	Read Mode = iota
	// Write writes all of them, and reads none that it has not written: a temporary is not initialised.
	Write
	// ReadWrite reads them, and may write some.
	ReadWrite
)

// String returns "r", "w" or "rw".
func (m Mode) String() string {
	switch m {
	case Read:
		return "r"
	case Write:
		return "w"
	case ReadWrite:
		return "rw"
	}
	return fmt.Sprintf("Mode(%d)", int32(m))
}

// ParseMode is the inverse of Mode.String.
func ParseMode(name string) (Mode, error) {
	for _, m := range []Mode{Read, Write, ReadWrite} {
		if m.String() == name {
			return m, nil
		}
	}
	return Read, valueError("mode", fmt.Sprintf("%q", name), "r, w, rw")
}

// Writes reports whether elements may be written.
func (m Mode) Writes() bool { return m != Read }
