// Package protocol is how clients and servers of a store talk: ids, errors, frames, and how fields are written into
// them. docs/store-protocol.md describes it. It knows neither clients nor servers.
package protocol

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"

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

// EventKind is what has happened to an object.
type EventKind uint8

// The kinds of events.
const (
	Created EventKind = 1 + iota
	Sealed
	Deleted // by a client, or because its maker ended without sealing it
	Evicted
	Spilled
	Restored
	Named
	Unnamed
	// Missed says that so many events were more than a client has asked for in time.
	Missed
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	names := [...]string{
		"none", "created", "sealed", "deleted", "evicted", "spilled", "restored", "named", "unnamed", "missed",
	}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is something that has happened to an object.
type Event struct {
	Kind   EventKind
	ID     ID
	Name   string // of Named and Unnamed
	Missed int64  // of Missed
}

// Smallest is how many bytes lie from one small object to the next, at least.
const Smallest = 64

var PageSize = int64(os.Getpagesize())

// RoundUp returns bytes in whole units, and the most of these that an int64 has where that is less.
func RoundUp(bytes, unit int64) int64 {
	if bytes > math.MaxInt64-unit {
		return math.MaxInt64 / unit * unit
	}
	return (bytes + unit - 1) / unit * unit
}

// PlaceOf is how many bytes a small object takes: a power of two, or the half between two.
func PlaceOf(bytes int64) int64 {
	for place := int64(Smallest); ; place *= 2 {
		if bytes <= place {
			return place
		}
		if half := place + place/2; bytes <= half && half%Smallest == 0 {
			return half
		}
	}
}
