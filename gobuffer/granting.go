package gobuffer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/grants"
)

// grantedAs is the allocator that libraries have their memory of.
const grantedAs = backends.CUDA

// perThread is CUDA's name for a stream that each thread has one of.
const perThread backends.Stream = 2

// Grant returns size bytes of a CUDA device's memory for a library, until FreeFor. The library uses the memory first
// and last on stream s: what is enqueued on s from now on runs after all earlier uses. For backends.EveryStream nothing
// uses the memory any more, and nobody says which streams will. If hamr has nothing more to give back, and the
// callbacks of OnOutOfMemory have not either, the error is a *backends.OutOfMemoryError. Memory of a tag is paused by
// it.
func (r *Runtime) Grant(l Library, device, size int, s backends.Stream, t backends.Tag) (backends.Address, error) {
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
	if device, err = backing.Device(b, grantedAs, device); err != nil || size == 0 {
		return 0, err
	}
	if s == perThread {
		// It is a different stream on each thread, so nothing is known of it.
		s = backends.EveryStream
	}
	if l == LibraryNumba {
		// Numba frees many allocations at once and expects to find the memory free again.
		r.grants.Wait()
	}
	before := r.givenBack()
	r.grants.Drop()
	request := backends.Request{Allocator: grantedAs, Device: device, Size: size, Stream: s, Tag: t}
	m := &Memory{library: l, tag: t, ending: freed{}}
	if err := r.place(m, backends.Region{Allocator: grantedAs, Device: device}, size, s); err != nil {
		return 0, err
	}
	at, err := m.take(&request)
	if err != nil {
		err = r.takeAgain(before, b, err, func() (failed error) {
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

// grant is memory that a library holds.
type grant = grants.Grant[Memory]

// granted records what a library holds from now on.
func (r *Runtime) granted(m *Memory, at backends.Address) {
	m.region.Address = at
	r.grants.Add(at, grant{Memory: m, Stream: m.ordered()})
	m.come(m.Size())
}

// GrantAtOnce is Grant if that needs no wait, see backends.AtOnce. Else it returns zero and has done nothing.
func (r *Runtime) GrantAtOnce(l Library, device, size int, s backends.Stream, t backends.Tag) backends.Address {
	if r.check() != nil || size <= 0 || int64(size) > math.MaxInt64/2 || r.tracing() || r.books.watched.Load() != 0 {
		return 0
	}
	b := r.byAllocator[grantedAs].atOnce
	if b == nil {
		return 0
	}
	m := &Memory{library: l, tag: t, ending: freed{}}
	if r.place(m, backends.Region{Allocator: grantedAs, Device: device}, size, s) != nil {
		return 0
	}
	at, ok := b.AllocateAtOnce(backends.Request{Allocator: grantedAs, Device: device, Size: size, Stream: s,
		Tag: t})
	if !ok {
		return 0
	}
	r.granted(m, at)
	return at
}

// UseFor adds a stream that uses a library's memory: FreeFor then also waits for the work on that stream. The error is
// for memory that no library holds.
func (r *Runtime) UseFor(at backends.Address, s backends.Stream) error {
	if err := r.check(); err != nil {
		return err
	}
	if s == perThread {
		s = backends.EveryStream
	}
	if !r.grants.Use(at, s) {
		return valueError("address", fmt.Sprintf("%#x", uintptr(at)), "memory that a library has from hamr")
	}
	return nil
}

// FreeFor takes back what Grant returned, in the order of its stream, which must still exist. It does not wait: what
// cannot be freed at once is freed in the background. If nobody says which streams use the memory, the background waits
// for the device. It returns false for memory that no library holds, and a Checker reports that.
func (r *Runtime) FreeFor(at backends.Address) bool {
	if r.check() != nil {
		return false
	}
	of, ok := r.grants.Take(at)
	if !ok {
		if c := r.checked(); c != nil {
			c.again(at)
		}
		return false
	}
	of.Memory.gone()
	of.Memory.retired = true
	served, where, size, s := of.Memory.served, of.Memory.region, of.Memory.Size(), of.Stream
	if r.tracing() {
		r.tracef("take back %s device %d size %d at %#x from %s", grantedAs, where.Device, size, at, of.Memory.library)
	}
	if c := r.checked(); c != nil {
		c.takes(of.Memory)
		c.soon(of.Memory, size, s)
		r.grants.Aside(func() {
			over := r.rested(where.Device)
			defer c.fills(of.Memory)()
			if over && c.hold(of.Memory, size, 0) {
				return
			}
			c.frees(of.Memory)
			if !over && len(of.Uses) > 0 {
				s = backends.EveryStream
			}
			_ = served.backend.Free(where, size, s)
		})
		return true
	}
	if len(of.Uses) == 0 && served.freedAtOnce(where, size, s) {
		return true
	}
	if keeper, ok := backends.As[backends.StreamKeeper](served.backend); ok && s != backends.EveryStream &&
		(len(of.Uses) > 0 || !keeper.Kept(s)) {
		if s = collected(keeper, of); served.freedAtOnce(where, size, s) {
			return true
		}
	}
	r.grants.Aside(func() {
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

// collected returns a stream that never ends and that runs after all work that uses the memory now.
func collected(keeper backends.StreamKeeper, of grant) backends.Stream {
	users := append(slices.Clone(of.Uses), of.Stream)
	if slices.Contains(users, backends.EveryStream) {
		return backends.EveryStream
	}
	s, err := keeper.Collect(of.Memory.region.Device, users...)
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

// KeepStream says that a library's stream does not end before DropStream. Memory that is freed in its order is
// available to it at once, and other streams need no event for each release. A stream that is not kept must end after
// its memory is freed.
func (r *Runtime) KeepStream(device int, s backends.Stream) error {
	b, err := r.Backend(grantedAs)
	if err != nil {
		return err
	}
	if device, err = backing.Device(b, grantedAs, device); err != nil {
		return err
	}
	keeper, ok := backends.As[backends.StreamKeeper](b)
	if !ok {
		return errors.ErrUnsupported
	}
	return keeper.KeepStream(device, s)
}

// DropStream says that a stream of KeepStream may end. It returns false while a library holds memory of the stream, or
// such memory is being freed. It does not wait.
func (r *Runtime) DropStream(device int, s backends.Stream) (bool, error) {
	b, err := r.Backend(grantedAs)
	if err != nil {
		return false, err
	}
	if r.grants.Pending() || r.grants.OnStream(s) {
		return false, nil
	}
	keeper, ok := backends.As[backends.StreamKeeper](b)
	if !ok {
		return false, errors.ErrUnsupported
	}
	return true, keeper.DropStream(device, s)
}

// SettleGrants waits until all memory that libraries have freed is free.
func (r *Runtime) SettleGrants() {
	if r.check() == nil {
		r.grants.Wait()
	}
}

// KeepGranted registers a caller that keeps granted memory which its library has freed, for the library's next request.
// drop gives that memory back by FreeFor and reports whether there was any. It is called before CUDA memory is taken
// for anybody else. There is one such caller; nil unregisters it.
func (r *Runtime) KeepGranted(drop func() bool) {
	if r.check() == nil {
		r.grants.Keep(drop)
	}
}
