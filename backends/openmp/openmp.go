// Package openmp serves memory of OpenMP's target devices by the device memory routines of whichever
// runtime the process has, which is looked for at run time: GCC's, LLVM's or a vendor's. Where the
// runtime has no device, its initial device serves, which is the host.
package openmp

import (
	"fmt"
	"sync"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/forked"
	"hamr/backends/internal/worker"
)

// LibrarySetting is the environment variable that names the runtime's library, in place of what the
// process has loaded and of libgomp.so.1.
const LibrarySetting = "HAMR_OPENMP_LIBRARY"

const name = "openmp"

// Backend is backends.Backend for the allocator OpenMP, and implements Describer, Identified, LibraryReporter and
// HostDevices. Its devices have the runtime's numbers. It has no streams: everything is complete at return. All calls
// for a device come from one thread of the backend's, since plugins leave a context of their own current on the
// thread that calls them. Memory belongs to the caller until Free, and only Copy and code on its device may touch it.
// All methods are safe for concurrent use.
type Backend struct {
	lookup func(string) string
	probe  func() error
	worker worker.Worker

	// Set by Probe.
	library library
	count   int
	onHost  bool // the one device is the initial one
}

// New returns the backend. Probe reads the setting through lookup.
func New(lookup func(string) string) *Backend {
	b := &Backend{lookup: lookup}
	b.probe = sync.OnceValue(b.load)
	return b
}

// Name returns "openmp".
func (*Backend) Name() string { return name }

// Probe chooses the library and counts its devices at its first call: those that a program registers
// later are not seen. The error is an *backends.UnavailableError, or a *backends.ForkedError in a
// child whose parent had used the backend before the fork.
func (b *Backend) Probe() error { return b.probe() }

// DeviceCount returns how many devices the runtime has, at least one.
func (b *Backend) DeviceCount() (int, error) { return b.count, nil }

// Library returns the runtime's file.
func (b *Backend) Library() string { return b.library.path }

// OnHost reports whether the device is the runtime's initial one.
func (b *Backend) OnHost(int) bool { return b.onHost }

func (b *Backend) load() error {
	if forked.Since(name) {
		return &backends.ForkedError{Backend: name, Reason: "its devices and threads are the parent's"}
	}
	tried, library, devices, err := b.find(b.lookup(LibrarySetting))
	if err == nil {
		// Without the mark a child cannot tell.
		err = forked.Mark(name)
	}
	if err != nil {
		return &backends.UnavailableError{Backend: name, Tried: tried, Reason: err.Error()}
	}
	b.library, b.count, b.onHost = library, max(devices, 1), devices < 1
	return nil
}

// on calls f with the runtime's number of a device and that of the initial one, which changes when a
// program registers devices, so it is asked for each time.
func (b *Backend) on(call string, device int, f func(number, initial uintptr) error) (err error) {
	if device < 0 || device >= b.count {
		return failure(call, invalid, fmt.Sprintf("there is no device %d", device))
	}
	if b.onHost {
		// No plugin is called here, and to go by the other thread takes a hundred times as long.
		initial := b.initial()
		return f(initial, initial)
	}
	b.worker.Do(func() { err = f(uintptr(device), b.initial()) })
	return err
}

func (b *Backend) initial() uintptr { return dl.Call(b.library.GetInitialDevice) }

// numberOf returns the runtime's number of a region's device.
func (b *Backend) numberOf(r backends.Region, initial uintptr) uintptr {
	if b.onHost || r.Allocator.Backend() != name {
		return initial
	}
	return uintptr(r.Device)
}
