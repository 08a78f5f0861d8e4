//go:build !cgo

package dl

// Libraries of vendors are called by cgo. Without it this line is the compiler's error.
const _ uint = "hamr's backends need cgo: build with CGO_ENABLED=1 and a C compiler"
