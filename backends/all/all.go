// Package all lists the backends that a program may use. It is the only place
// that knows them all: adding one is a line here.
package all

import (
	"hamr/backends"
	"hamr/backends/host"
)

// New returns one of each backend, in order of preference. None has been probed.
// The caller owns them.
func New() []backends.Backend {
	return []backends.Backend{
		host.New(),
	}
}

// FreeFunction returns the address of the C function void(*)(void *) that gives
// back host memory of a, or zero: see host.FreeFunction.
func FreeFunction(a backends.Allocator) uintptr { return host.FreeFunction(a) }
