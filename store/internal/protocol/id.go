package protocol

import (
	"encoding/hex"
	"fmt"

	"golang.org/x/sys/unix"
)

// ID names an object: 16 random bytes, of which no server makes the same twice.
type ID [16]byte

func NewID() (id ID) {
	for {
		// Fails for nothing but a signal: so few bytes come whole, once the machine has started.
		if _, err := unix.Getrandom(id[:], 0); err == nil {
			return id
		}
	}
}

// String returns 32 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String returns.
func ParseID(text string) (id ID, err error) {
	if len(text) != 2*len(id) {
		return ID{}, &ArgumentError{"id", fmt.Sprintf("%q", text), "32 hexadecimal digits"}
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return ID{}, &ArgumentError{"id", fmt.Sprintf("%q", text), "32 hexadecimal digits"}
	}
	return id, nil
}
