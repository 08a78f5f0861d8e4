package gobuffer

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/counts"
	"hamr/gobuffer/internal/grants"
	"hamr/gobuffer/internal/modules"
	"hamr/gobuffer/internal/order"
	"hamr/gobuffer/internal/released"
	"hamr/gobuffer/internal/relief"
	"hamr/gobuffer/internal/shares"
)

// Runtime is a set of backends, found by allocator, and the counters of the memory they handed out. It is safe for
// concurrent use and never changes once made. On nil and the zero value, methods that return an error return one that
// is ErrZero. The others return their zero values, and backends.None for an allocator.
type Runtime struct {
	backends    backing.Set
	byAllocator [allocatorSlots]served
	temporaries [][]backends.Allocator // by space
	counters    [allocatorSlots]counts.Counter[Memory]
	books       books
	postponed   released.Queues[*Memory]
	aside       released.Aside[*Memory]
	unasked     order.Unasked
	callbacks   relief.Callbacks // of OnOutOfMemory
	claims      claims
	kept        kept
	modules     modules.Set
	shares      shares.Ledger
	grants      grants.Table[Memory]
	pauses      pauses
	blockFaults blockFaults
	trace       atomic.Pointer[func(string)]
}

const allocatorSlots = backends.MostAllocators

// NewRuntime returns a Runtime over the given backends, in order of preference.
// Nothing is loaded: each backend is probed when its memory is first asked for.
func NewRuntime(list ...backends.Backend) (*Runtime, error) {
	r := new(Runtime)
	if err := r.backends.Fill(list); err != nil {
		return nil, err
	}
	for _, a := range backends.Allocators() {
		b := r.backends.Serves(a)
		streams, _ := backends.As[backends.Streams](b)
		converter, _ := backends.As[backends.Converter](b)
		batcher, _ := backends.As[backends.BatchCopier](b)
		blocks, _ := backends.As[backends.BlockCopier](b)
		waiter, waits := backends.As[backends.FreeWaiter](b)
		mapper, maps := backends.As[backends.Mapper](b)
		atOnce, _ := backends.As[backends.AtOnce](b)
		locator, _ := backends.As[backends.Locator](b)
		reuser, reuses := backends.As[backends.Reuser](b)
		again := reuses && reuser.Reuses(a)
		grower, grows := backends.As[backends.Grower](b)
		if grows && !grower.Grows(a) {
			grower = nil
		}
		pauser, pauses := backends.As[backends.Pauser](b)
		if pauses && !pauser.Pauses(a) {
			pauser = nil
		}
		r.byAllocator[a] = served{b, streams, converter, batcher, blocks, atOnce, locator, a, a.Kind(),
			a.ReachableFrom(backends.SpaceHost), waits && waiter.FreeWaits(a), maps && mapper.Maps(a),
			a.Ordered() || (again && a.Kind() != backends.Pinned), grower, pauser, again && a.Kind() == backends.Pinned}
	}
	for _, s := range backends.Spaces() {
		r.temporaries = append(r.temporaries, backing.Temporaries(s, r.effort))
	}
	return r, nil
}

// effort is less for memory that its backend hands out again: it takes such memory without a call of the driver.
func (r *Runtime) effort(a backends.Allocator) int {
	if of := &r.byAllocator[a]; of.inOrder && !a.Ordered() {
		return 0
	}
	return 1
}

var process atomic.Pointer[Runtime]

// Use makes the given backends the process's own, for New and the other functions that name no Runtime. It is meant to
// be called once, at the start; memory made earlier stays with the Runtime that made it.
func Use(list ...backends.Backend) error {
	r, err := NewRuntime(list...)
	if err != nil {
		return err
	}
	process.Store(r)
	return nil
}

// Default returns the Runtime that Use set, or ErrNoBackends.
func Default() (*Runtime, error) {
	if r := process.Load(); r != nil {
		return r, nil
	}
	return nil, ErrNoBackends
}

// Backends lists the registered backends in order of preference.
func (r *Runtime) Backends() []backends.Backend {
	if r == nil {
		return nil
	}
	return slices.Clone(r.backends.List())
}

// check refuses what NewRuntime did not make.
func (r *Runtime) check() error {
	if r == nil || !r.backends.Made() {
		return errNoRuntime
	}
	return nil
}

// Backend returns the backend that serves a, probed. The error is a
// *backends.UnavailableError if its runtime is absent.
func (r *Runtime) Backend(a backends.Allocator) (backends.Backend, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.backends.Backend(a)
}

// Named returns the backend with a name, probed. The error is a *backends.UnavailableError if its runtime is absent.
func (r *Runtime) Named(name string) (backends.Backend, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return r.backends.Named(name)
}

// Locate asks the runtimes on this machine which of them owns the memory at an address. Memory that none knows has
// allocator None. If no runtime that could tell is available, the error is the first *backends.UnavailableError.
func (r *Runtime) Locate(at backends.Address) (backends.Location, error) {
	found := backends.Location{Region: backends.Region{Address: at, Allocator: backends.None, Device: backends.HostDevice}}
	if err := r.check(); err != nil {
		return found, err
	}
	return r.backends.Locate(found)
}

// HostAllocator returns the allocator for host memory that moves fastest to the
// devices present: page-locked memory if there is any, else malloc.
func (r *Runtime) HostAllocator() backends.Allocator { return r.preferred(true) }

// DeviceAllocator returns the preferred allocator of the devices present, see backends.Facts.Preference, else malloc.
func (r *Runtime) DeviceAllocator() backends.Allocator { return r.preferred(false) }

func (r *Runtime) preferred(pinned bool) backends.Allocator {
	if r.check() != nil {
		return backends.None
	}
	return r.backends.Preferred(pinned)
}

// SetTrace makes the runtime report every allocation, free, copy and handle to f, and what it found by measuring. f
// must be safe for concurrent use. nil ends the reports.
func (r *Runtime) SetTrace(f func(line string)) {
	if r == nil {
		return
	}
	for _, b := range r.Backends() {
		if s, ok := backends.As[backends.Stager](b); ok {
			s.Staging().SetTrace(f)
		}
	}
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

// Words returns the addresses of three 64-bit numbers. While all three are zero, the Runtime need not know of writes to
// host memory or to a device's memory. They are the number of temporaries it keeps (see Array.Cached), the function
// that is told of what it does (see SetTrace), and the number of accesses that hold elements (see Array.AccessMode).
// They exist as long as the Runtime.
func (r *Runtime) Words() (kept, trace, claims uintptr) {
	if r.check() != nil {
		return 0, 0, 0
	}
	return uintptr(unsafe.Pointer(&r.kept.some)), uintptr(unsafe.Pointer(&r.trace)), uintptr(unsafe.Pointer(&r.claims.all))
}

// WatchedWord is the address of a 32-bit number. It is zero while there is no Recorder, no Tracker and no limit of a
// library, so that nobody need be told of an allocation. It exists as long as the Runtime.
func (r *Runtime) WatchedWord() uintptr {
	if r.check() != nil {
		return 0
	}
	return uintptr(unsafe.Pointer(&r.books.watched))
}

// CheckedWord is the address of a 64-bit number. It is zero while there is no Checker, so that freed memory need not be
// passed to one. It exists as long as the Runtime.
func (r *Runtime) CheckedWord() uintptr {
	if r.check() != nil {
		return 0
	}
	return uintptr(unsafe.Pointer(&r.books.checker))
}

// Tracing reports whether SetTrace was given a function.
func (r *Runtime) Tracing() bool { return r != nil && r.tracing() }

// String is for messages.
func (r *Runtime) String() string {
	switch {
	case r == nil:
		return "<nil>"
	case r.check() != nil:
		return "runtime that was not made"
	}
	return "runtime of " + r.backends.Names()
}

// temporariesIn are the allocators of temporary memory for code in space s: at least one.
func (r *Runtime) temporariesIn(s backends.Space) ([]backends.Allocator, error) {
	if int(s) < len(r.temporaries) && len(r.temporaries[s]) > 0 {
		return r.temporaries[s], nil
	}
	return nil, valueError("space", s, backends.SpaceNames())
}
