package gobuffer

import (
	"errors"

	"hamr/arrayiface"
	"hamr/backends"
)

// copyElements makes dst's elements equal to src's, converted to dst's type. The shapes are equal. It works for any two
// places, any strides, and elements that overlap: where the host reaches both it is one pass, where both are plain and
// alike it is one copy by the device, and else a device that can rearranges or converts them, or the strided or
// converted side goes through the host.
func (r *Runtime) copyElements(dst, src piece, t Transfer) error {
	if dst.layout.Count() == 0 {
		return nil
	}
	//mutate:remove a temporary is kept whose elements a movement has changed
	defer r.kept.changed(dst)
	if dst.onHost() && src.onHost() {
		if dst.managed() && src.managed() {
			if err := r.copyManaged(dst, src, t); !errors.Is(err, errors.ErrUnsupported) {
				return err
			}
		}
		if err := src.settle(); err != nil {
			return err
		}
		if err := dst.settle(); err != nil {
			return err
		}
		return r.copyOnHost(dst, src)
	}
	if dst.maps() || src.maps() {
		return r.copyEntered(dst, src, t)
	}
	alike := dst.layout.Equal(src.layout)
	if alike && dst.address == src.address && dst.memory.backend == src.memory.backend && dst.overlaps(src) {
		return nil // another runtime's address may be other memory
	}
	if !alike || !dst.dense() {
		err := r.rearrange(dst, src, t)
		if errors.Is(err, errors.ErrUnsupported) {
			err = r.copyThroughHost(dst, src, t)
		}
		return err
	}
	if !dst.overlaps(src) {
		return r.copyBytes(dst, src, t)
	}
	between, err := r.scratch(dst, src.layout.NBytes())
	if outOfMemory(err) {
		between, err = r.Allocate(backends.Malloc, backends.HostDevice, src.layout.NBytes(), 0, false)
	}
	if err != nil {
		return err
	}
	return r.copyBy(between, src.layout, dst.stream, dst, src, t)
}

// copyBy copies by way of elements of a dense layout in memory that it releases.
func (r *Runtime) copyBy(
	between *Memory, layout arrayiface.Layout, s backends.Stream, dst, src piece, t Transfer,
) error {
	stage := piece{memory: between, address: between.region.Address, layout: layout, stream: s, stop: dst.stopWith(src)}
	err := r.copyElements(stage, src, t)
	if err == nil {
		err = r.copyElements(dst, stage, t)
	}
	if released := between.Release(); err == nil {
		err = released
	}
	return err
}

// copyThroughHost converts or rearranges elements that the host cannot reach on at
// least one side. What the source spans comes to the host. Of the target nothing
// does: what is between its elements may be written by others at any time.
func (r *Runtime) copyThroughHost(dst, src piece, t Transfer) error {
	if !dst.onHost() {
		return r.scatter(dst, src, t)
	}
	host, free, err := r.onHost(src)
	if err != nil {
		return err
	}
	defer free()
	if err := dst.settle(); err != nil {
		return err
	}
	return r.copyOnHost(dst, host)
}

// onHost returns p itself, if the host reaches it, or the span of it in host memory. free ends its use.
func (r *Runtime) onHost(p piece) (host piece, free func(), err error) {
	if p.onHost() {
		return p, func() {}, p.settle()
	}
	if p.maps() {
		return r.onHostEntered(p)
	}
	low, high := p.layout.Span()
	m, err := r.Allocate(backends.Malloc, backends.HostDevice, high-low, 0, false)
	if err != nil {
		return piece{}, nil, err
	}
	host = piece{memory: m, address: offset(m.region.Address, -low), layout: p.layout, stop: p.stop}
	if err := r.copyBytes(host.span(), p.span(), Sync); err != nil {
		m.Release()
		return piece{}, nil, err
	}
	return host, func() { m.Release() }, nil
}

// scatter writes the elements of dst, which the host does not reach, and no other byte: from src as it is, run by run,
// where the runs of both are the same bytes, else from elements without gaps that the host has made.
func (r *Runtime) scatter(dst, src piece, t Transfer) error {
	dst, src = inMemoryOrder(dst, src)
	if dst.takesRunsOf(src) {
		return r.copyRuns(dst, src, t)
	}
	host, free, err := r.onHost(src)
	if err != nil {
		return err
	}
	defer free()
	// The source's memory is another: what is there now may go on without it.
	layout := dst.plain(dst.layout.Type)
	between, err := r.Allocate(backends.Malloc, backends.HostDevice, layout.NBytes(), 0, false)
	if err != nil {
		return err
	}
	stage := piece{memory: between, address: between.region.Address, layout: layout, stop: dst.stopWith(src)}
	if err = r.copyOnHost(stage, host); err == nil {
		err = r.scatterPlain(dst, stage, t)
	}
	// Keeps it until the copies are over.
	if released := between.Release(); err == nil {
		err = released
	}
	return err
}

// scatterPlain is scatter from elements of dst's type without gaps: by the device, if
// it moves elements, else run by run.
func (r *Runtime) scatterPlain(dst, stage piece, t Transfer) error {
	if dst.memory.converter != nil && !dst.dense() && !dst.layout.OverlapsItself() {
		if err := r.rearrangeAtTarget(stage.layout, dst, stage, t); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return r.copyRuns(dst, stage, t)
}

// copyEntered is copyElements where the host may have one of the two mapped.
func (r *Runtime) copyEntered(dst, src piece, t Transfer) error {
	dst, leaveTarget, err := dst.enter(true)
	if err != nil {
		return err
	}
	src, leaveSource, err := src.enter(false)
	if err != nil {
		return errors.Join(err, leaveTarget())
	}
	err = r.copyElements(dst, src, t)
	return errors.Join(err, leaveSource(), leaveTarget())
}

// onHostEntered is onHost where the host may have p mapped.
func (r *Runtime) onHostEntered(p piece) (piece, func(), error) {
	entered, leave, err := p.enter(false)
	if err != nil {
		return piece{}, nil, err
	}
	host, free, err := r.onHost(entered)
	if err != nil {
		_ = leave()
		return piece{}, nil, err
	}
	return host, func() { free(); _ = leave() }, nil
}
