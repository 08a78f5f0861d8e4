// Package all lists the backends that a program may use. It is the only place
// that knows them all: adding one is a line here.
package all

import (
	"os"

	"hamr/backends"
	"hamr/backends/cuda"
	"hamr/backends/hip"
	"hamr/backends/host"
	"hamr/backends/opencl"
	"hamr/backends/openmp"
	"hamr/backends/sycl"
)

// makers make one of each backend from its settings, in order of preference.
var makers = []func(lookup func(string) string) backends.Backend{
	func(func(string) string) backends.Backend { return host.New() },
	func(lookup func(string) string) backends.Backend { return cuda.New(lookup) },
	func(lookup func(string) string) backends.Backend { return hip.New(lookup) },
	func(lookup func(string) string) backends.Backend { return opencl.New(lookup) },
	func(lookup func(string) string) backends.Backend { return openmp.New(lookup) },
	func(lookup func(string) string) backends.Backend { return sycl.New(lookup) },
}

// New returns one of each backend, in order of preference. None has been probed.
// The caller owns them. They read their settings from the environment.
func New() []backends.Backend { return NewWith(os.Getenv) }

// NewWith is New with settings from elsewhere: lookup returns the value of an
// environment variable, or "".
func NewWith(lookup func(string) string) (list []backends.Backend) {
	for _, maker := range makers {
		list = append(list, maker(lookup))
	}
	return list
}

// FreeFunction returns the address of the C function void(*)(void *) that gives
// back host memory of a, or zero: see host.FreeFunction.
func FreeFunction(a backends.Allocator) uintptr { return host.FreeFunction(a) }
