// Package opencl serves memory of OpenCL's devices, of all platforms that the loader libOpenCL
// finds, which is looked for at run time. It has a context and a default queue of its own on
// each device; queues that others make in that context are streams like its own.
package opencl

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/forked"
	"hamr/backends/internal/queues"
)

// The settings, as names of environment variables.
const (
	// LibrarySetting is the loader to take in place of libOpenCL.so.1.
	LibrarySetting = "HAMR_OPENCL_LIBRARY"
	// MemorySetting says which memory a device is taken to have at most: "usm", unified shared
	// memory, which is the default, "fine" or "coarse", shared virtual memory of these grains.
	MemorySetting = "HAMR_OPENCL_MEMORY"
)

const name = "opencl"

// Backend is backends.Backend for the allocators OpenCLDevice and OpenCLSVM, and implements
// Streams, Mapper, Supporter, EventAdopter, Timer, Identified and Describer. Devices are those of
// all platforms: GPUs first, then accelerators, then CPUs. Memory belongs to the caller until
// Free. All methods are safe for concurrent use.
type Backend struct {
	lookup func(string) string
	probe  func() error

	// Set by Probe.
	library library
	file    string
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

// Name returns "opencl".
func (*Backend) Name() string { return name }

// Probe loads the library and finds the devices at its first call. The error is an
// *backends.UnavailableError, or a *backends.ForkedError in a child whose parent had used the
// backend before the fork.
func (b *Backend) Probe() error { return b.probe() }

// DeviceCount returns how many devices there are on all platforms.
func (b *Backend) DeviceCount() (int, error) { return len(b.devices), nil }

// Library returns the loader's file, which finds the platforms' own.
func (b *Backend) Library() string { return b.file }

func (b *Backend) load() error {
	tried := []string{"libOpenCL.so.1", "libOpenCL.so"}
	if override := b.lookup(LibrarySetting); override != "" {
		tried = []string{override}
	}
	unavailable := func(reason string) error {
		return &backends.UnavailableError{Backend: name, Tried: tried, Reason: reason}
	}
	most, err := parseMemory(b.lookup(MemorySetting))
	if err != nil {
		return unavailable(err.Error())
	}
	if forked.Since(name) {
		return &backends.ForkedError{Backend: name, Reason: "its platforms have threads, which a fork leaves behind"}
	}
	found, err := dl.OpenWith(dl.System, tried, "")
	if err != nil {
		return unavailable(err.Error())
	}
	b.file = found.Path()
	if err := dl.Bind(found, &b.library); err != nil {
		return unavailable(err.Error())
	}
	// Without the mark a child cannot tell, and its first call hangs.
	if err := forked.Mark(name); err != nil {
		return unavailable("no mark for forked children: " + err.Error())
	}
	if err := b.findDevices(most); err != nil {
		return unavailable(found.Path() + ": " + err.Error())
	}
	return nil
}

// findDevices asks each platform. One that fails leaves the others.
func (b *Backend) findDevices(most memoryModel) error {
	platforms, code := b.handles(b.library.GetPlatformIDs)
	if code != success {
		return failure("clGetPlatformIDs", code, "")
	}
	var without []string
	for _, p := range platforms {
		list, code := b.handles(b.library.GetDeviceIDs, p, deviceTypeAll)
		if code != success {
			text, _ := b.platformText(p, platformName)
			without = append(without, fmt.Sprintf("%s: clGetDeviceIDs failed with %s (%d)", text, nameOf(code), code))
		}
		for _, handle := range list {
			d, err := b.newDevice(p, handle, most)
			if err != nil {
				without = append(without, err.Error())
			} else if d != nil {
				b.devices = append(b.devices, d)
			}
		}
	}
	if len(b.devices) == 0 {
		if len(platforms) == 0 {
			without = append(without, "clGetPlatformIDs found no platform")
		}
		return fmt.Errorf("no device: %s", strings.Join(without, "; "))
	}
	slices.SortStableFunc(b.devices, func(x, y *device) int { return x.rank() - y.rank() })
	for i, d := range b.devices {
		d.number = i
	}
	return nil
}

// handles calls a function of the form f(arguments…, count, list, &found).
func (b *Backend) handles(function uintptr, arguments ...uintptr) ([]uintptr, int32) {
	found := dl.OnHeap(uint32(0))
	code := int32(dl.Call(function, append(slices.Clone(arguments), 0, 0, uintptr(unsafe.Pointer(found)))...))
	if code != success || *found == 0 {
		return nil, code
	}
	list := dl.OnHeap([mostHandles]uintptr{})
	count := min(*found, mostHandles)
	code = int32(dl.Call(function,
		append(slices.Clone(arguments), uintptr(count), uintptr(unsafe.Pointer(list)), uintptr(unsafe.Pointer(found)))...))
	runtime.KeepAlive(found)
	return slices.Clone(list[:min(count, *found)]), code
}

// mostHandles is of platforms, and of devices of one.
const mostHandles = 64

// call calls an entry point of b.library. Pointers to Go variables are converted to uintptr in the
// argument list.
//
//go:uintptrescapes
func (b *Backend) call(function uintptr, arguments ...uintptr) error {
	if code := int32(dl.Call(function, arguments...)); code != success {
		return failure(dl.SymbolOf(&b.library, function), code, "")
	}
	return nil
}

// made calls an entry point that returns a handle, and whose last argument is where the code goes.
//
//go:uintptrescapes
func (b *Backend) made(function uintptr, arguments ...uintptr) (uintptr, error) {
	handle, code := madeBy(function, arguments...)
	if code != success {
		return 0, failure(dl.SymbolOf(&b.library, function), code, "")
	}
	return handle, nil
}

// madeBy calls a function that returns a pointer or handle, and whose last argument is where the code goes.
func madeBy(function uintptr, arguments ...uintptr) (uintptr, int32) {
	code := dl.OnHeap(int32(0))
	handle := dl.Call(function, append(slices.Clone(arguments), uintptr(unsafe.Pointer(code)))...)
	runtime.KeepAlive(arguments)
	return handle, *code
}
