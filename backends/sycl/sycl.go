// Package sycl serves unified shared memory of SYCL's devices, through the C interface of dpctl,
// libDPCTLSyclInterface, which is looked for at run time. It works in the contexts that dpctl and dpnp use
// by default, so that their memory and queues are used as its own are.
package sycl

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/forked"
	"hamr/backends/internal/queues"
)

// The settings, as names of environment variables.
const (
	// LibrarySetting is the library to take, wherever there is another one.
	LibrarySetting = "HAMR_SYCL_LIBRARY"
	// PackageSetting is the folder of the Python package dpctl, in which the library is. Python says so.
	PackageSetting = "HAMR_SYCL_PACKAGE"

	verbositySetting = "DPCTL_VERBOSITY" // of dpctl's own
)

const (
	name        = "sycl"
	libraryName = "libDPCTLSyclInterface.so"
)

// Backend is backends.Backend for the allocators SYCLDevice, SYCLShared and SYCLHost, and implements
// Streams, Supporter, EventAdopter, Timer, LibraryReporter and Describer. Devices are those of all platforms that SYCL
// finds: GPUs first, then accelerators, then CPUs, and last those without such memory. Memory
// belongs to the caller until Free. All methods are safe for concurrent use.
type Backend struct {
	lookup func(string) string
	probe  func() error

	// Set by Probe.
	library library
	file    string // the library's
	devices []*device

	queues.Streams
	queues *queues.Queues
}

// New returns the backend. Probe reads the settings through lookup.
func New(lookup func(string) string) *Backend {
	b := &Backend{lookup: lookup}
	b.queues = queues.New(driver{b})
	b.Streams = b.queues.Streams()
	b.probe = sync.OnceValue(b.load)
	return b
}

// Name returns "sycl".
func (*Backend) Name() string { return name }

// Probe loads the library and finds the devices at its first call. The error is an
// *backends.UnavailableError, or a *backends.ForkedError in a child whose parent had used the
// backend before the fork.
func (b *Backend) Probe() error { return b.probe() }

// DeviceCount returns how many devices there are on all platforms.
func (b *Backend) DeviceCount() (int, error) { return len(b.devices), nil }

// Library returns the C interface's file, which finds SYCL's own library.
func (b *Backend) Library() string { return b.file }

// names are the libraries to try, in this order.
func (b *Backend) names() []string {
	if override := b.lookup(LibrarySetting); override != "" {
		return []string{override}
	}
	// The name alone finds the one that the process has loaded.
	tried := []string{libraryName}
	if folder := b.lookup(PackageSetting); folder != "" {
		tried = append(tried, filepath.Join(folder, libraryName))
	}
	return tried
}

func (b *Backend) load() error {
	tried := b.names()
	unavailable := func(reason string) error {
		return &backends.UnavailableError{Backend: name, Tried: tried, Reason: reason}
	}
	if forked.Since(name) {
		return &backends.ForkedError{Backend: name, Reason: "its runtimes have threads, which a fork leaves behind"}
	}
	found, err := dl.OpenWith(dl.System, tried, "")
	if err != nil {
		return unavailable(err.Error())
	}
	if err := dl.Bind(found, &b.library); err != nil {
		return unavailable(err.Error())
	}
	b.file = found.Path()
	// Without the mark a child cannot tell, and its first call hangs.
	if err := forked.Mark(name); err != nil {
		return unavailable("no mark for forked children: " + err.Error())
	}
	if err := b.findDevices(); err != nil {
		return unavailable(found.Path() + ": " + err.Error())
	}
	return nil
}

func (b *Backend) findDevices() error {
	list := dl.Call(b.library.GetDevices, anyBackend|anyDevice)
	if list == 0 {
		return b.refused(b.library.GetDevices)
	}
	defer dl.Call(b.library.DeleteVector, list)
	for i := range dl.Call(b.library.VectorSize, list) {
		handle := dl.Call(b.library.VectorGetAt, list, i)
		if handle == 0 {
			return b.refused(b.library.VectorGetAt)
		}
		b.devices = append(b.devices, b.newDevice(handle))
	}
	if len(b.devices) == 0 {
		return fmt.Errorf("SYCL finds no device")
	}
	slices.SortStableFunc(b.devices, func(x, y *device) int { return x.rank() - y.rank() })
	for i, d := range b.devices {
		d.number = i
	}
	return nil
}

// made calls an entry point that returns a reference, which the caller deletes.
//
//go:uintptrescapes
func (b *Backend) made(function uintptr, arguments ...uintptr) (uintptr, error) {
	made := dl.Call(function, arguments...)
	if made == 0 {
		return 0, b.refused(function)
	}
	return made, nil
}

// truth is a result of C's type bool, which has one byte.
func truth(result uintptr) bool { return byte(result) != 0 }
