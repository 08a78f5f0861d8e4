package gobuffer

import (
	"errors"
	"fmt"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/elements"
	"hamr/gobuffer/internal/order"
)

// Transfer says which movements are over when a call returns.
type Transfer int32

// The transfer modes, with HAMR's values.
const (
	// Async waits for nothing that it need not: Synchronize before touching the data from another stream, or from the host
	// without asking for Access. What was moved to ordinary host memory is there all the same, since that is read without
	// asking anybody, unless somebody has page-locked it; and Access by the host waits in every mode.
	Async Transfer = 0
	// SyncHost waits for movements from a device to the host, so that the host never reads too early.
	SyncHost Transfer = 1
	// Sync waits for every movement.
	Sync Transfer = 2

	// deferred is Async for movements to ordinary host memory, too: whoever asks for it waits before he returns.
	deferred Transfer = -1
)

// smallEnough is how many bytes the host rearranges or converts sooner than a device could be told to.
const smallEnough = 64 << 10

// String returns "async", "sync_host" or "sync".
func (t Transfer) String() string {
	switch t {
	case Async:
		return "async"
	case SyncHost:
		return "sync_host"
	case Sync:
		return "sync"
	}
	return fmt.Sprintf("Transfer(%d)", int32(t))
}

// ParseTransfer is the inverse of Transfer.String.
func ParseTransfer(name string) (Transfer, error) {
	for _, t := range []Transfer{Async, SyncHost, Sync} {
		if t.String() == name {
			return t, nil
		}
	}
	return Async, valueError("transfer", fmt.Sprintf("%q", name), "async, sync_host, sync")
}

func (r *Runtime) copyOnHost(dst, src piece) error {
	if r.tracing() {
		r.tracef("copy %d elements from %#x to %#x on the host", dst.layout.Count(), src.address, dst.address)
	}
	to, from := hostPointer(dst.address), hostPointer(src.address)
	same := to == from && dst.layout.Equal(src.layout)
	if same || !arrayiface.Overlap(uintptr(to), dst.layout, uintptr(from), src.layout) {
		return elements.CopyStrided(to, dst.layout, from, src.layout)
	}
	plain, err := src.layout.WithType(src.layout.Type)
	if err != nil {
		return err
	}
	between, err := r.Allocate(backends.Malloc, backends.HostDevice, plain.NBytes(), 0, false)
	if err != nil {
		return err
	}
	defer between.Release()
	p := hostPointer(between.region.Address)
	if err := elements.CopyStrided(p, plain, from, src.layout); err != nil {
		return err
	}
	return elements.CopyStrided(to, dst.layout, p, plain)
}

// copyByRuntimeOf is a copy by the runtime of side, one of the two. If the other is another
// runtime's, it must be where the host reaches it, and is host memory to this one.
func (r *Runtime) copyByRuntimeOf(side, dst, src piece, t Transfer) error {
	return r.copyRegions(side, dst, src, side.regionOf(dst), side.regionOf(src), t)
}

// copyRegions is copyByRuntimeOf where that is told of other regions than the pieces' own.
func (r *Runtime) copyRegions(side, dst, src piece, to, from backends.Region, t Transfer) error {
	size := dst.layout.NBytes()
	if r.tracing() {
		r.tracef("copy %d bytes %s device %d at %#x to %s device %d at %#x", size,
			src.region().Allocator, src.memory.region.Device, src.address,
			dst.region().Allocator, dst.memory.region.Device, dst.address)
	}
	return side.enqueue(dst, src, t, func(w *order.Work) (backends.Progress, error) {
		return side.memory.copyUntil(dst.stopWith(src), to, from, size, w.Stream)
	})
}

// regionOf is what the runtime of p is told of q.
func (p piece) regionOf(q piece) backends.Region {
	r := q.region()
	if q.memory.backend != p.memory.backend && q.memory.kind != backends.Pageable {
		r.Allocator, r.Device = backends.Malloc, backends.HostDevice
	}
	return r
}

// enqueue puts a movement from src to dst on side's stream, after what both sides'
// streams hold already, and waits for it where t says so.
func (side piece) enqueue(dst, src piece, t Transfer, move func(*order.Work) (backends.Progress, error)) (err error) {
	w, err := side.work()
	if err != nil {
		return err
	}
	if err := src.settleUnlocked(w); err != nil {
		return err
	}
	before, err := src.followedBy(w)
	if err != nil {
		return err
	}
	overwritten, err := dst.followedBy(w)
	if err != nil {
		return errors.Join(err, before.LetGo())
	}
	defer func() { err = errors.Join(err, before.LetGo(), overwritten.LetGo()) }()
	stop := dst.stopWith(src)
	//mutate:never a runtime is given ordinary memory to write to before the work is over that it waits for
	if dst.kind() == backends.Pageable {
		// Once a runtime is asked to write there it cannot be stopped.
		if err := w.WaitUntil(stop); err != nil {
			return err
		}
	}
	left, err := move(w)
	if side.memory.streams == nil {
		return err
	}
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		// Some of it may be enqueued, as of a conversion of which the second launch failed.
		stopped := errors.Is(err, backends.ErrStopped)
		//mutate:replace what a stopped copy reads is taken for unused
		//mutate:with src.kind() != backends.Pageable => false
		if !stopped || src.kind() != backends.Pageable {
			err = errors.Join(err, src.mark(w, before))
		}
		//mutate:replace what a stopped copy writes to is taken for unused
		//mutate:with dst.kind() != backends.Pageable => false
		if !stopped || dst.kind() != backends.Pageable {
			err = errors.Join(err, dst.mark(w, overwritten))
		}
		return err
	}
	if left == backends.Complete {
		// What it followed is over, too.
		return errors.Join(src.memory.uses.Done(before), dst.memory.uses.Done(overwritten))
	}
	if left&backends.Reading != 0 || dst.memory == src.memory {
		//mutate:skip the source of a movement is not marked
		err = src.mark(w, before)
	}
	if dst.memory != src.memory {
		//mutate:replace the target of a movement is not marked
		//mutate:with dst.mark(w, overwritten) => nil
		err = errors.Join(err, dst.mark(w, overwritten))
	}
	// Ordinary host memory is read without asking anybody, in every mode.
	if err != nil || t == deferred ||
		t != Sync && dst.kind() != backends.Pageable && (t != SyncHost || !dst.onHost()) {
		return err
	}
	if stop != nil && dst.kind() != backends.Pageable {
		err = w.WaitUntil(stop)
	} else {
		//mutate:skip synchronous transfers are not waited for
		err = w.Wait()
	}
	if err != nil {
		return err
	}
	return errors.Join(src.memory.uses.Done(order.Works{w}), dst.memory.uses.Done(order.Works{w}))
}

func (p piece) fillContiguous(pattern []byte, count int, t Transfer) (err error) {
	m := p.memory
	if m.streams == nil {
		if err := p.settle(); err != nil {
			return err
		}
		return m.backend.Fill(p.region(), pattern, count, p.stream)
	}
	w, err := p.work()
	if err != nil {
		return err
	}
	before, err := p.followedBy(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, before.LetGo()) }()
	if err := m.backend.Fill(p.region(), pattern, count, w.Stream); err != nil {
		// Some of it may be enqueued, as of a fill that is several copies.
		//mutate:replace what a failed fill has enqueued is nobody's
		//mutate:with m.mark(w, before) => nil
		return errors.Join(err, m.mark(w, before))
	}
	if err := m.mark(w, before); err != nil || t != Sync {
		return err
	}
	if err := w.Wait(); err != nil {
		return err
	}
	return m.uses.Done(order.Works{w})
}

// copyUntil is the backend's Copy until stop asks, where the backend can do that.
func (m *Memory) copyUntil(
	stop *backends.Stop, dst, src backends.Region, size int, s backends.Stream,
) (backends.Progress, error) {
	if stop != nil {
		if stop.Asked() {
			return backends.Complete, backends.ErrStopped
		}
		if able := m.stopper(); able != nil {
			return able.CopyUntil(stop, dst, src, size, s)
		}
	}
	return m.backend.Copy(dst, src, size, s)
}

// stopper is nil where the backend's copies cannot be stopped.
func (m *Memory) stopper() backends.Stopper {
	able, _ := backends.As[backends.Stopper](m.backend)
	return able
}
