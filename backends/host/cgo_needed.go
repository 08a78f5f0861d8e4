//go:build !cgo

package host

// The C library's heap is called by cgo. Without it this line is the compiler's error.
const _ uint = "hamr's backends need cgo: build with CGO_ENABLED=1 and a C compiler"
