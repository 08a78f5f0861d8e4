package gobuffer

import (
	"errors"

	"hamr/arrayiface"
	"hamr/backends"
)

// stageBytes is the most that is on its way through one piece of host memory, of which a copy
// between two runtimes uses two: so much that what each piece costs is little beside its bytes.
var stageBytes = 4 << 20

// copyBetweenRuntimes copies the bytes of two dense and equal layouts in memory of two runtimes, of which the host does
// not reach at least one at any time. Where it reaches the other, this is host memory to the runtime of the one, and
// where the device of the one reaches the other, its own: nothing is between. Else the bytes go through host memory, a
// piece at a time. It is over when it returns.
func (r *Runtime) copyBetweenRuntimes(dst, src piece) error {
	for _, way := range []struct{ side, other piece }{{dst, src}, {src, dst}} {
		as, why, err := r.asOwn(way.side, way.other)
		if err != nil {
			return err
		}
		if as == backends.None {
			continue
		}
		if r.tracing() {
			r.tracef("between %s and %s there is nothing: %s", src.memory.region.Allocator, dst.memory.region.Allocator, why)
		}
		own := func(p piece) backends.Region {
			if p.memory == way.other.memory {
				return backends.Region{Address: p.address, Allocator: as, Device: way.side.memory.region.Device}
			}
			return p.region()
		}
		return r.copyRegions(way.side, dst, src, own(dst), own(src), Sync)
	}
	for _, way := range []struct{ side, other piece }{{dst, src}, {src, dst}} {
		if !way.other.hostReaches() || way.side.onHost() {
			continue
		}
		if r.tracing() {
			r.tracef("between %s and %s there is nothing: the host reaches the %s memory, which is its own to %s",
				src.memory.region.Allocator, dst.memory.region.Allocator, way.other.memory.region.Allocator,
				way.side.memory.backend.Name())
		}
		return r.copyByRuntimeOf(way.side, dst, src, Sync)
	}
	return r.copyStaged(dst.span(), src.span())
}

// asOwn is the allocator that side's runtime would have taken other's memory by, if its device
// reaches that; else backends.None.
func (r *Runtime) asOwn(side, other piece) (as backends.Allocator, why string, err error) {
	s, err := backends.ParseSpace(side.memory.backend.Name())
	if err != nil || !other.memory.region.Allocator.SharedWith(s) || side.memory.kind == backends.Pinned {
		return backends.None, "", nil
	}
	said, err := r.backends.ReachedBy(other.region(), s, side.memory.region.Device)
	if err != nil || !said.Is || said.Runtime == nil {
		return backends.None, "", err
	}
	for _, a := range backends.Allocators() {
		if r.byAllocator[a].backend == side.memory.backend && a.Kind() == other.memory.kind && !a.Ordered() {
			return a, said.Why, nil
		}
	}
	return backends.None, "", nil
}

// hostReaches reports whether the host can use p as it is, once no work on it is pending.
func (p piece) hostReaches() bool {
	if p.onHost() {
		return true
	}
	able, ok := backends.As[backends.HostReacher](p.memory.backend)
	return ok && able.HostReaches(p.region())
}

// copyStaged copies bytes by way of host memory: while one runtime empties a piece of it, the other fills the next.
func (r *Runtime) copyStaged(dst, src piece) (err error) {
	size := dst.layout.NBytes()
	stages := make([]piece, 0, 2)
	defer func() {
		for _, s := range stages {
			err = errors.Join(err, s.memory.Release())
		}
	}()
	for done := 0; done < size && len(stages) < cap(stages); done += stageBytes {
		m, err := r.newStage(dst, src, min(size, stageBytes))
		if err != nil {
			return err
		}
		stages = append(stages, piece{memory: m, address: m.region.Address, stop: dst.stopWith(src)})
	}
	if r.tracing() {
		r.tracef("between %s and %s are %d pieces of %d bytes of %s: "+
			"neither runtime reaches the other's memory, nor does the host", src.memory.region.Allocator,
			dst.memory.region.Allocator, len(stages), stages[0].memory.Size(), stages[0].memory.region.Allocator)
	}
	for i, done := 0, 0; done < size; i, done = i+1, done+stageBytes {
		n, t := min(size-done, stageBytes), deferred
		if done+n == size {
			t = Sync
		}
		stage := stages[i%len(stages)].part(0, n)
		if err := r.copyByRuntimeOf(src, stage, src.part(done, n), t); err != nil {
			return err
		}
		if err := r.copyByRuntimeOf(dst, dst.part(done, n), stage, t); err != nil {
			return err
		}
		if t == deferred {
			// An event, so that who fills it again need not wait for what comes after.
			if err := dst.leaves(stage); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaves records for other memory, which p's stream uses, what that holds now.
func (p piece) leaves(other piece) error {
	if p.memory.streams == nil {
		return nil
	}
	w, err := p.work()
	if err != nil {
		return err
	}
	return other.memory.leave(w)
}

// part is n of p's bytes.
func (p piece) part(from, n int) piece {
	p.address = offset(p.address, from)
	p.layout = arrayiface.Layout{Type: arrayiface.Uint8, Shape: []int{n}, Strides: []int{1}}
	return p
}

// newStage is host memory between two runtimes: such as one of them page-locks, where it is worth that and can be had.
func (r *Runtime) newStage(dst, src piece, size int) (*Memory, error) {
	if size > smallEnough {
		for _, p := range []piece{src, dst} {
			for _, a := range backends.Preferred(true) {
				if a.Backend() != p.memory.region.Allocator.Backend() {
					continue
				}
				if m, err := r.Allocate(a, backends.HostDevice, size, 0, false); err == nil {
					return m, nil
				}
			}
		}
	}
	return r.Allocate(backends.Malloc, backends.HostDevice, size, 0, false)
}

// copyBytes moves the bytes of two dense and equal layouts, of which the host does not reach at least one, by the
// runtime of that one. It runs after what both sides' streams hold already, on the device side's own: a stream that was
// given to host memory may be another device's.
func (r *Runtime) copyBytes(dst, src piece, t Transfer) error {
	side := dst
	if dst.onHost() {
		side = src
	}
	if dst.memory.backend != src.memory.backend && dst.memory.kind != backends.Pageable &&
		src.memory.kind != backends.Pageable {
		return r.copyBetweenRuntimes(dst, src)
	}
	var known lockedRange
	if t == Async && dst.locked == nil { // else it is waited for
		dst.lockFor(&side, &known)
	}
	if src.locked == nil && src.memory.uses.WrittenLate() {
		src.lockFor(&side, &known)
	}
	return r.copyByRuntimeOf(side, dst, src, t)
}
