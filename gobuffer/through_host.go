package gobuffer

import (
	"errors"

	"hamr/arrayiface"
	"hamr/backends"
)

// copyElements makes dst's elements equal to src's, converted to dst's type.
// The shapes are equal. It works for any two places, any strides, and elements
// that overlap: where the host reaches both it is one pass, where both are plain
// and alike it is one copy by the device, and else a device that can rearranges
// or converts them, or the strided or converted side goes through the host.
func (r *Runtime) copyElements(dst, src piece, t Transfer) error {
	if dst.layout.Count() == 0 {
		return nil
	}
	if dst.onHost() && src.onHost() {
		if err := src.settle(); err != nil {
			return err
		}
		if err := dst.settle(); err != nil {
			return err
		}
		return r.copyOnHost(dst, src)
	}
	if !dst.layout.Equal(src.layout) || !dst.dense() {
		err := r.rearrange(dst, src, t)
		if errors.Is(err, errors.ErrUnsupported) {
			err = r.copyThroughHost(dst, src)
		}
		return err
	}
	if !dst.overlaps(src) {
		return r.copyBytes(dst, src, t)
	}
	if dst.address == src.address {
		return nil
	}
	between, err := r.Allocate(dst.memory.region.Allocator, dst.memory.region.Device, src.layout.NBytes(), dst.stream, false)
	if err != nil {
		return err
	}
	return r.copyBy(between, src.layout, dst.stream, dst, src, t)
}

// copyBy copies by way of elements of a dense layout in memory that it releases.
func (r *Runtime) copyBy(between *Memory, layout arrayiface.Layout, s backends.Stream, dst, src piece, t Transfer) error {
	stage := piece{between, between.region.Address, layout, s}
	err := r.copyElements(stage, src, t)
	if err == nil {
		err = r.copyElements(dst, stage, t)
	}
	if released := between.Release(); err == nil {
		err = released
	}
	return err
}

// copyThroughHost converts or rearranges elements that the host cannot reach on
// at least one side: the bytes that the strided side spans come to the host and,
// for the destination, go back. Bytes between the elements are kept.
func (r *Runtime) copyThroughHost(dst, src piece) error {
	hostSource, free, err := r.onHost(src, true)
	if err != nil {
		return err
	}
	defer free()
	hostTarget, freeTarget, err := r.onHost(dst, !dst.dense())
	if err != nil {
		return err
	}
	defer freeTarget()
	if err := r.copyOnHost(hostTarget, hostSource); err != nil || dst.onHost() {
		return err
	}
	return r.writeBack(dst, hostTarget)
}

// onHost returns p itself, if the host reaches it, or the span of it in host
// memory, filled if asked for. free ends its use.
func (r *Runtime) onHost(p piece, fill bool) (host piece, free func(), err error) {
	if p.onHost() {
		return p, func() {}, p.settle()
	}
	low, high := p.layout.Span()
	m, err := r.Allocate(backends.Malloc, backends.HostDevice, high-low, 0, false)
	if err != nil {
		return piece{}, nil, err
	}
	host = piece{m, offset(m.region.Address, -low), p.layout, 0}
	if fill {
		if err := r.copyBytes(host.span(), p.span(), Sync); err != nil {
			m.Release()
			return piece{}, nil, err
		}
	}
	return host, func() { m.Release() }, nil
}

func (r *Runtime) writeBack(dst, host piece) error {
	return r.copyBytes(dst.span(), host.span(), Sync)
}

// span is the bytes from p's lowest to its highest.
func (p piece) span() piece {
	low, high := p.layout.Span()
	p.address = offset(p.address, low)
	p.layout = arrayiface.Layout{Type: arrayiface.Uint8, Shape: []int{high - low}, Strides: []int{1}}
	return p
}
