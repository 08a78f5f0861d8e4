//go:build !cgo

package dl

// Vendors' libraries are called by cgo. Without cgo this line is a compiler error.
const _ uint = "hamr's backends need cgo: build with CGO_ENABLED=1 and a C compiler"
