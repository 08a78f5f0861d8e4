package gobuffer

import "fmt"

// Library is an array library that has its memory from a Runtime, see AllocateFor.
type Library int32

// The libraries. C and Python have the same numbers.
const (
	CuPy Library = iota + 1
	Torch
	Numba
)

var libraryNames = [...]string{CuPy: "cupy", Torch: "torch", Numba: "numba"}

// Valid reports whether l is one of the libraries.
func (l Library) Valid() bool { return l > 0 && int(l) < len(libraryNames) }

// String returns the name that one imports it by.
func (l Library) String() string {
	if !l.Valid() {
		return fmt.Sprintf("library %d", int32(l))
	}
	return libraryNames[l]
}
