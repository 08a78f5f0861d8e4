package gobuffer

import (
	"fmt"
	"sync/atomic"

	"hamr/backends"
)

// Runtime is a set of backends, found by allocator, and the counters of the
// memory they handed out. It is safe for concurrent use and immutable once
// made.
type Runtime struct {
	list        []backends.Backend
	byName      map[string]backends.Backend
	byAllocator [allocatorSlots]served
	counters    [allocatorSlots]counter
	trace       atomic.Pointer[func(string)]
}

// served is what the Runtime needs to know of an allocator at every call, looked
// up once.
type served struct {
	backend backends.Backend // nil if no backend serves the allocator
	streams backends.Streams // nil if the backend has none
	kind    backends.MemoryKind
	onHost  bool // the host reaches the memory
}

// allocatorSlots bounds Allocator values that index an array; NewRuntime
// refuses larger ones.
const allocatorSlots = 32

// NewRuntime returns a Runtime over the given backends, in order of preference.
// Nothing is loaded: each backend is probed when its memory is first asked for.
func NewRuntime(list ...backends.Backend) (*Runtime, error) {
	r := &Runtime{list: list, byName: make(map[string]backends.Backend, len(list))}
	for _, b := range list {
		if _, twice := r.byName[b.Name()]; twice {
			return nil, fmt.Errorf("backend %q is registered twice", b.Name())
		}
		r.byName[b.Name()] = b
	}
	for _, a := range backends.Allocators() {
		if int(a) >= allocatorSlots {
			return nil, fmt.Errorf("allocator %s has value %d: at most %d fit", a, a, allocatorSlots-1)
		}
		b := r.byName[a.Backend()]
		streams, _ := b.(backends.Streams)
		r.byAllocator[a] = served{b, streams, a.Kind(), a.ReachableFrom(backends.SpaceHost)}
	}
	return r, nil
}

var process atomic.Pointer[Runtime]

// Use makes the given backends the process's own, for New and the other
// functions that name no Runtime. It is meant to be called once, at the start;
// memory made earlier stays with the Runtime that made it.
func Use(list ...backends.Backend) error {
	r, err := NewRuntime(list...)
	if err != nil {
		return err
	}
	process.Store(r)
	return nil
}

// Default returns the Runtime that Use set.
func Default() (*Runtime, error) {
	if r := process.Load(); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("no backends: call gobuffer.Use(all.New()...) first")
}

// Backends lists the registered backends in order of preference.
func (r *Runtime) Backends() []backends.Backend { return r.list }

// Backend returns the backend that serves a, probed. The error is a
// *backends.UnavailableError if its runtime is absent.
func (r *Runtime) Backend(a backends.Allocator) (backends.Backend, error) {
	if a < 0 || int(a) >= allocatorSlots {
		return nil, valueError("allocator", a, "one of "+allocatorNames())
	}
	b := r.byAllocator[a].backend
	if b == nil {
		if !a.Valid() {
			return nil, valueError("allocator", a, "one of "+allocatorNames())
		}
		return nil, &backends.UnavailableError{Backend: a.Backend(), Reason: "this build of hamr has no such backend"}
	}
	if err := b.Probe(); err != nil {
		return nil, err
	}
	return b, nil
}

// checkDevice resolves the device that memory of allocator a is to be taken
// from: HostDevice for host memory, else an existing device. a is one that
// Backend accepted.
func (r *Runtime) checkDevice(b backends.Backend, a backends.Allocator, device int) (int, error) {
	if r.byAllocator[a].kind == backends.Pageable {
		return backends.HostDevice, nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, err
	}
	if device == backends.HostDevice {
		device = 0
	}
	if device < 0 || device >= count {
		return 0, valueError("device", device, fmt.Sprintf("0 … %d for allocator %s", count-1, a))
	}
	return device, nil
}

// HostAllocator returns the allocator for host memory that moves fastest to the
// devices present: page-locked memory if there is any, else malloc.
func (r *Runtime) HostAllocator() backends.Allocator {
	return r.firstAvailable(backends.CUDAHost, backends.Malloc)
}

// DeviceAllocator returns the preferred allocator of the devices present:
// cuda_async, else hip, else openmp, else malloc.
func (r *Runtime) DeviceAllocator() backends.Allocator {
	return r.firstAvailable(backends.CUDAAsync, backends.HIP, backends.OpenMP, backends.Malloc)
}

func (r *Runtime) firstAvailable(list ...backends.Allocator) backends.Allocator {
	for _, a := range list {
		if b, err := r.Backend(a); err == nil {
			if a.Kind() == backends.Pageable {
				return a
			}
			if n, err := b.DeviceCount(); err == nil && n > 0 {
				return a
			}
		}
	}
	return backends.Malloc
}

// spaceAllocator returns what a temporary for code in space s is made of.
func (r *Runtime) spaceAllocator(s backends.Space) (backends.Allocator, error) {
	switch s {
	case backends.SpaceHost:
		return backends.Malloc, nil
	case backends.SpaceCUDA:
		return backends.CUDAAsync, nil
	case backends.SpaceHIP:
		return backends.HIP, nil
	case backends.SpaceOpenMP:
		return backends.OpenMP, nil
	}
	return backends.None, valueError("space", s, "host, cuda, hip, openmp")
}

// SetTrace makes the runtime report every allocation, free, copy and handle to
// f, which must be safe for concurrent use; nil ends that.
func (r *Runtime) SetTrace(f func(line string)) {
	if f == nil {
		r.trace.Store(nil)
		return
	}
	r.trace.Store(&f)
}

func (r *Runtime) tracef(format string, arguments ...any) {
	if f := r.trace.Load(); f != nil {
		(*f)(fmt.Sprintf(format, arguments...))
	}
}

// tracing guards calls of tracef on paths where boxing the arguments would cost.
func (r *Runtime) tracing() bool { return r.trace.Load() != nil }
