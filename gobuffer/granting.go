package gobuffer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hamr/backends"
)

// grantedAs is the allocator that libraries have their memory of.
const grantedAs = backends.CUDA

// perThread is CUDA's name for a stream that each thread has one of.
const perThread backends.Stream = 2

// Grant returns size bytes of a CUDA device's memory for a library that work on stream s uses
// first and last, until FreeFor: what is enqueued on s from now on runs after all earlier uses. For backends.EveryStream nothing uses the memory any more, and nobody says
// what will. A *backends.OutOfMemoryError is returned when hamr itself has no more to give back,
// and the callbacks of OnOutOfMemory neither.
func (r *Runtime) Grant(l Library, device, size int, s backends.Stream) (backends.Address, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	if l == LibraryHamr || l >= libraryCount {
		return 0, valueError("library", uint8(l), "that of cupy, torch and numba")
	}
	if size < 0 || int64(size) > math.MaxInt64/2 {
		return 0, valueError("size", size, "0 … 2**62 bytes")
	}
	b, err := r.Backend(grantedAs)
	if err != nil {
		return 0, err
	}
	if device, err = r.checkDevice(b, grantedAs, device); err != nil || size == 0 {
		return 0, err
	}
	if s == perThread {
		// Another one on each thread: nothing can be said of it.
		s = backends.EveryStream
	}
	if l == LibraryNumba {
		// It frees many at a time, which it expects to be there again.
		r.grants.wait()
	}
	before, helped := r.grants.ended.Load(), r.callbacks.helped.Load()
	r.dropGranted()
	request := backends.Request{Allocator: grantedAs, Device: device, Size: size, Stream: s}
	m := &Memory{library: l}
	if err := r.place(m, backends.Region{Allocator: grantedAs, Device: device}, size, s); err != nil {
		return 0, err
	}
	at, err := m.take(&request)
	if outOfMemory(err) && r.grants.waitSince(before) {
		at, err = m.take(&request)
	}
	if err != nil && r.madeRoom(b, err) {
		at, err = m.take(&request)
	}
	if err != nil {
		err = r.relieve(err, helped, func() (failed error) {
			at, failed = m.take(&request)
			return failed
		})
	}
	if err != nil {
		return 0, err
	}
	r.granted(m, at)
	if r.tracing() {
		r.tracef("grant %s device %d size %d at %#x to %s", grantedAs, device, size, at, l)
	}
	return at, nil
}

// granted books what a library has from now on.
func (r *Runtime) granted(m *Memory, at backends.Address) {
	m.region.Address = at
	r.grants.add(at, grant{memory: m})
	m.come(m.Size())
}

// GrantAtOnce is Grant where that waits for nobody, see backends.AtOnce; else it returns zero,
// and nothing has happened.
func (r *Runtime) GrantAtOnce(l Library, device, size int, s backends.Stream) backends.Address {
	if r.check() != nil || size <= 0 || int64(size) > math.MaxInt64/2 || r.tracing() || r.books.watched.Load() != 0 {
		return 0
	}
	b := r.byAllocator[grantedAs].atOnce
	if b == nil {
		return 0
	}
	m := &Memory{library: l}
	if r.place(m, backends.Region{Allocator: grantedAs, Device: device}, size, s) != nil {
		return 0
	}
	at, ok := b.AllocateAtOnce(backends.Request{Allocator: grantedAs, Device: device, Size: size, Stream: s})
	if !ok {
		return 0
	}
	r.granted(m, at)
	return at
}

// UseFor makes memory of a library's wait, when FreeFor frees it, for what is then on another stream, too.
// The error is for memory that no library has.
func (r *Runtime) UseFor(at backends.Address, s backends.Stream) error {
	if err := r.check(); err != nil {
		return err
	}
	if s == perThread {
		s = backends.EveryStream
	}
	if !r.grants.use(at, s) {
		return valueError("address", fmt.Sprintf("%#x", uintptr(at)), "memory that a library has from hamr")
	}
	return nil
}

// FreeFor takes back what Grant returned, in the order of its stream, which must not have ended. It
// waits for nobody: what cannot be freed at once is freed aside. Memory whose users nobody says waits for
// the device. It is false for memory that no library has, of which a Checker tells.
func (r *Runtime) FreeFor(at backends.Address) bool {
	if r.check() != nil {
		return false
	}
	of, ok := r.grants.take(at)
	if !ok {
		if c := r.checked(); c != nil {
			c.again(at)
		}
		return false
	}
	of.memory.gone()
	served, where, size, s := of.memory.served, of.memory.region, of.memory.Size(), of.memory.ordered()
	if r.tracing() {
		r.tracef("take back %s device %d size %d at %#x from %s", grantedAs, where.Device, size, at, of.memory.library)
	}
	if c := r.checked(); c != nil {
		c.takes(of.memory)
		c.soon(of.memory, size, s)
		r.grants.aside(func() {
			over := r.rested(where.Device)
			defer c.fills(of.memory)()
			if over && c.hold(of.memory, size, 0) {
				return
			}
			c.frees(of.memory)
			if !over && len(of.uses) > 0 {
				s = backends.EveryStream
			}
			_ = served.backend.Free(where, size, s)
		})
		return true
	}
	if len(of.uses) == 0 && served.freedAtOnce(where, size, s) {
		return true
	}
	if keeper, ok := backends.As[backends.StreamKeeper](served.backend); ok && s != backends.EveryStream && (len(of.uses) > 0 || !keeper.Kept(s)) {
		if s = collected(keeper, of); served.freedAtOnce(where, size, s) {
			return true
		}
	}
	r.grants.aside(func() {
		if s == backends.EveryStream && r.rested(where.Device) {
			s = 0
		}
		// The pool keeps what the driver does not take.
		_ = served.backend.Free(where, size, s)
	})
	return true
}

func (s *served) freedAtOnce(at backends.Region, size int, stream backends.Stream) bool {
	return stream != backends.EveryStream && s.atOnce != nil && s.atOnce.FreeAtOnce(at, size, stream)
}

// collected returns a stream that stays, and runs after all that uses memory now.
func collected(keeper backends.StreamKeeper, of grant) backends.Stream {
	users := append(slices.Clone(of.uses), of.memory.ordered())
	if slices.Contains(users, backends.EveryStream) {
		return backends.EveryStream
	}
	s, err := keeper.Collect(of.memory.region.Device, users...)
	if err != nil {
		return backends.EveryStream
	}
	return s
}

// rested waits for all work on a device, and reports whether it is over.
func (r *Runtime) rested(device int) bool {
	waiter, ok := backends.As[backends.DeviceSynchronizer](r.byAllocator[grantedAs].backend)
	return ok && waiter.SynchronizeDevice(device) == nil
}

// KeepStream tells that a stream of a library does not end before DropStream: memory that is freed in its order
// is there for it at once, and others need no event of each. What is not kept must end after the memory of
// its is freed.
func (r *Runtime) KeepStream(device int, s backends.Stream) error {
	b, err := r.Backend(grantedAs)
	if err != nil {
		return err
	}
	if device, err = r.checkDevice(b, grantedAs, device); err != nil {
		return err
	}
	keeper, ok := backends.As[backends.StreamKeeper](b)
	if !ok {
		return errors.ErrUnsupported
	}
	return keeper.KeepStream(device, s)
}

// DropStream tells that a stream that KeepStream was told of may end, and reports false while some library
// has memory of it, or what it had is being freed. It waits for nobody.
func (r *Runtime) DropStream(device int, s backends.Stream) (bool, error) {
	b, err := r.Backend(grantedAs)
	if err != nil {
		return false, err
	}
	if r.grants.pending() || r.grants.onStream(s) {
		return false, nil
	}
	keeper, ok := backends.As[backends.StreamKeeper](b)
	if !ok {
		return false, errors.ErrUnsupported
	}
	return true, keeper.DropStream(device, s)
}

// SettleGrants returns when all memory that libraries have freed is free.
func (r *Runtime) SettleGrants() {
	if r.check() == nil {
		r.grants.wait()
	}
}

// KeepGranted tells of a caller who keeps memory that it was granted, and that its library has freed, for
// what the library asks for next: drop gives that back by FreeFor. It is called before CUDA memory is taken
// for whoever does not find it at once, and reports whether there was any. There is one such caller; nil is none.
func (r *Runtime) KeepGranted(drop func() bool) {
	if r.check() != nil {
		return
	}
	if drop == nil {
		r.grants.drop.Store(nil)
		return
	}
	r.grants.drop.Store(&drop)
}
