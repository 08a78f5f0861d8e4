package gobuffer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
	"hamr/gobuffer/internal/shares"
)

// Runtime is a set of backends, found by allocator, and the counters of the
// memory they handed out. It is safe for concurrent use and immutable once
// made. On nil and the zero value methods that return an error return one that is ErrZero, and
// the others their zero values, backends.None for an allocator.
type Runtime struct {
	list        []backends.Backend
	byName      map[string]backends.Backend
	byAllocator [allocatorSlots]served
	temporaries [][]backends.Allocator // by space
	counters    [allocatorSlots]counter
	books       books
	postponed   postponed
	aside       aside
	unasked     order.Unasked
	callbacks   callbacks
	claims      claims
	kept        kept
	modules     loadedModules
	same        sameDevices
	shares      shares.Ledger
	grants      grants
	trace       atomic.Pointer[func(string)]
}

// served is what the Runtime needs to know of an allocator at every call, looked
// up once.
type served struct {
	backend   backends.Backend     // nil if no backend serves the allocator
	streams   backends.Streams     // nil if the backend has none
	converter backends.Converter   // nil if the backend is none
	batcher   backends.BatchCopier // likewise
	atOnce    backends.AtOnce      // likewise
	kind      backends.MemoryKind
	onHost    bool            // the host reaches the memory
	freeWaits bool            // its Free waits for the device
	maps      bool            // the host can map the memory
	inOrder   bool            // it is taken and given back in the order of a stream
	grower    backends.Grower // nil if the memory cannot grow
	settled   bool            // its backend hands it out again, and it is given back when nothing uses it
}

const allocatorSlots = backends.MostAllocators

// NewRuntime returns a Runtime over the given backends, in order of preference.
// Nothing is loaded: each backend is probed when its memory is first asked for.
func NewRuntime(list ...backends.Backend) (*Runtime, error) {
	r := &Runtime{list: list, byName: make(map[string]backends.Backend, len(list))}
	for _, b := range list {
		if b == nil {
			return nil, valueError("backend", "nil", "what a backend's New returns")
		}
		if _, twice := r.byName[b.Name()]; twice {
			return nil, valueError("backend", fmt.Sprintf("%q twice", b.Name()), "one of each name")
		}
		r.byName[b.Name()] = b
	}
	for _, a := range backends.Allocators() {
		b := r.byName[a.Backend()]
		streams, _ := backends.As[backends.Streams](b)
		converter, _ := backends.As[backends.Converter](b)
		batcher, _ := backends.As[backends.BatchCopier](b)
		waiter, waits := backends.As[backends.FreeWaiter](b)
		mapper, maps := backends.As[backends.Mapper](b)
		atOnce, _ := backends.As[backends.AtOnce](b)
		reuser, reuses := backends.As[backends.Reuser](b)
		again := reuses && reuser.Reuses(a)
		grower, grows := backends.As[backends.Grower](b)
		if grows && !grower.Grows(a) {
			grower = nil
		}
		r.byAllocator[a] = served{b, streams, converter, batcher, atOnce, a.Kind(), a.ReachableFrom(backends.SpaceHost),
			waits && waiter.FreeWaits(a), maps && mapper.Maps(a), a.Ordered() || (again && a.Kind() != backends.Pinned), grower,
			again && a.Kind() == backends.Pinned}
	}
	for _, s := range backends.Spaces() {
		r.temporaries = append(r.temporaries, r.temporariesFor(s))
	}
	return r, nil
}

// temporariesFor is backends.Temporaries, but memory that its backend hands out again comes first:
// to take it asks no driver.
func (r *Runtime) temporariesFor(s backends.Space) []backends.Allocator {
	list := slices.Clone(backends.Temporaries(s))
	slices.SortStableFunc(list, func(a, b backends.Allocator) int { return r.effort(a) - r.effort(b) })
	return list
}

func (r *Runtime) effort(a backends.Allocator) int {
	if of := &r.byAllocator[a]; of.inOrder && !a.Ordered() {
		return 0
	}
	return 1
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
	return slices.Clone(r.list)
}

// check refuses what NewRuntime did not make.
func (r *Runtime) check() error {
	if r == nil || r.byName == nil {
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

// Named returns the backend with a name, probed. The error is a
// *backends.UnavailableError if its runtime is absent.
func (r *Runtime) Named(name string) (backends.Backend, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	b := r.byName[name]
	if b == nil {
		names := make([]string, len(r.list))
		for i, known := range r.list {
			names[i] = known.Name()
		}
		return nil, valueError("backend", fmt.Sprintf("%q", name), "one of "+strings.Join(names, ", "))
	}
	return b, b.Probe()
}

// checkDevice resolves the device that memory of allocator a is to be taken
// from: HostDevice for host memory, page-locked or not, else an existing device;
// HostDevice stands for the current one. a is one that Backend accepted.
func (r *Runtime) checkDevice(b backends.Backend, a backends.Allocator, device int) (int, error) {
	kind := r.byAllocator[a].kind
	if kind == backends.Pageable {
		return backends.HostDevice, nil
	}
	if device == backends.HostDevice {
		if kind == backends.Pinned {
			return device, nil
		}
		return currentDevice(b)
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, err
	}
	if device < 0 || device >= count {
		return 0, valueError("device", device, deviceNumbers(count, "allocator "+a.String()))
	}
	if kind == backends.Pinned {
		return backends.HostDevice, nil
	}
	return device, nil
}

func deviceNumbers(count int, of string) string { return fmt.Sprintf("0 … %d for %s", count-1, of) }

// currentDevice is that of the calling thread, where the backend's runtime keeps
// one, else the first.
func currentDevice(b backends.Backend) (int, error) {
	if c, ok := backends.As[backends.Current](b); ok {
		return c.CurrentDevice()
	}
	return 0, nil
}

// Locate asks the runtimes on this machine whose memory at is. The error is the
// first *backends.UnavailableError if none of those that could tell is there;
// memory that none knows has allocator None.
func (r *Runtime) Locate(at backends.Address) (backends.Location, error) {
	found := backends.Location{Region: backends.Region{Address: at, Allocator: backends.None, Device: backends.HostDevice}}
	if err := r.check(); err != nil {
		return found, err
	}
	var absent error
	asked := false
	for _, b := range r.list {
		locator, ok := backends.As[backends.Locator](b)
		if !ok {
			continue
		}
		if err := b.Probe(); err != nil {
			if absent == nil {
				absent = err
			}
			continue
		}
		asked = true
		l, err := locator.Locate(at)
		if err != nil || l.Allocator != backends.None {
			return l, err
		}
	}
	if !asked {
		return found, absent
	}
	return found, nil
}

// HostAllocator returns the allocator for host memory that moves fastest to the
// devices present: page-locked memory if there is any, else malloc.
func (r *Runtime) HostAllocator() backends.Allocator { return r.preferred(true) }

// DeviceAllocator returns the preferred allocator of the devices present, see
// backends.Facts.Preference, else malloc.
func (r *Runtime) DeviceAllocator() backends.Allocator { return r.preferred(false) }

func (r *Runtime) preferred(pinned bool) backends.Allocator {
	if r.check() != nil {
		return backends.None
	}
	for _, a := range backends.Preferred(pinned) {
		b, err := r.Backend(a)
		if err != nil {
			continue
		}
		if n, err := b.DeviceCount(); err != nil || n == 0 {
			continue
		}
		if s, ok := backends.As[backends.Supporter](b); ok && s.Supports(a, 0) != nil {
			continue
		}
		if h, ok := backends.As[backends.HostDevices](b); ok && h.OnHost(0) {
			continue
		}
		return a
	}
	return backends.Temporaries(backends.SpaceHost)[0]
}

// SetTrace makes the runtime report every allocation, free, copy and handle, and what was
// found by measuring, to f, which must be safe for concurrent use; nil ends that.
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

// Words are where numbers of 64 bits are that are zero while the Runtime need not know that host memory
// is written to, or a device's: how many temporaries it keeps (see Array.Cached), who is told of what it
// does (see SetTrace), and how many accesses have elements for their own (see Array.AccessMode). They are
// there as long as the Runtime.
func (r *Runtime) Words() (kept, trace, claims uintptr) {
	if r.check() != nil {
		return 0, 0, 0
	}
	return uintptr(unsafe.Pointer(&r.kept.some)), uintptr(unsafe.Pointer(&r.trace)), uintptr(unsafe.Pointer(&r.claims.all))
}

// WatchedWord is the address of 32 bits that are zero while no Recorder, no Tracker and no limit of a library is
// there, which are to be told of each allocation. They are there as long as the Runtime.
func (r *Runtime) WatchedWord() uintptr {
	if r.check() != nil {
		return 0
	}
	return uintptr(unsafe.Pointer(&r.books.watched))
}

// CheckedWord is the address of 64 bits that are zero while there is no Checker, which memory that is freed is to
// come to. They are there as long as the Runtime.
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
	names := make([]string, len(r.list))
	for i, b := range r.list {
		names[i] = b.Name()
	}
	return "runtime of " + strings.Join(names, ", ")
}

// temporariesIn are the allocators of temporary memory for code in space s: at least one.
func (r *Runtime) temporariesIn(s backends.Space) ([]backends.Allocator, error) {
	if int(s) < len(r.temporaries) && len(r.temporaries[s]) > 0 {
		return r.temporaries[s], nil
	}
	return nil, valueError("space", s, backends.SpaceNames())
}

// sameDevices are the numbers of devices in other runtimes, by what was asked. They never change.
type sameDevices struct{ known sync.Map }

// callbacks are those of OnOutOfMemory.
type callbacks struct {
	mutex  sync.Mutex // of list, which is never changed in place
	list   []*callback
	turn   sync.Mutex    // of who calls them
	thread atomic.Int64  // of who calls them, or zero
	helped atomic.Uint64 // how often memory was given back
}

type callback struct {
	call func(device, bytes int) bool
}
