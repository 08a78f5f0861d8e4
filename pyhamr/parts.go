package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// OpenParts has the first size bytes of an object handed out in parts, while it is not sealed, and returns a number.
// The token is the builder's.
func OpenParts(token uint64, size int) (uint64, error) { return bridge.OpenParts(token, size) }

// TakePart returns the address of a part, which no work uses any more.
//
//hamr:blocking
func TakePart(number uint64, size int) (uint64, error) {
	at, err := bridge.TakePart(number, size)
	return uint64(at), err
}

// GivePart takes it back.
func GivePart(number, address uint64) int {
	bridge.GivePart(number, backends.Address(address))
	return 0
}

// FreeParts returns how many bytes are free, or with largest how many of them in one piece.
func FreeParts(number uint64, largest bool) (int, error) { return bridge.FreeParts(number, largest) }

// CloseParts ends what hands out parts, and returns how many libraries have.
func CloseParts(number uint64) int { return bridge.CloseParts(number) }

// EnterParts has torch take parts on the calling thread until LeaveParts; of the number 0, memory as otherwise.
func EnterParts(number uint64) (uint64, error) { return bridge.EnterParts(number) }

// LeaveParts ends that, from any thread.
func LeaveParts(use uint64) int {
	bridge.LeaveParts(use)
	return 0
}
