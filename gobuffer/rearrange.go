package gobuffer

import (
	"errors"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// rearrange is copyElements for two pieces that differ in strides or type and of which the host does not reach at least
// one, by kernels of the devices. The error is errors.ErrUnsupported, and nothing was done, where these cannot.
func (r *Runtime) rearrange(dst, src piece, t Transfer) error {
	strangers := !dst.onHost() && !src.onHost() && dst.memory.backend != src.memory.backend
	if strangers && src.layout.NBytes() <= smallEnough {
		return errors.ErrUnsupported
	}
	if dst.layout.OverlapsItself() || !deviceConverts(dst.layout.Type, src.layout.Type) {
		return errors.ErrUnsupported
	}
	if !dst.onHost() {
		switch {
		case dst.memory.converter == nil && strangers && dst.dense():
			// The source's device can, perhaps.
		case dst.memory.converter == nil:
			return errors.ErrUnsupported
		case dst.reaches(src) && dst.overlaps(src):
			return r.rearrangeAtTarget(src.plain(src.layout.Type), dst, src, t)
		case dst.reaches(src):
			return r.convert(dst, dst, src, t)
		case src.onHost() && dst.dense() && (src.layout.NBytes() <= smallEnough || !src.dense()):
			return errors.ErrUnsupported
		case src.onHost() || src.dense():
			// As they are across the bus, and changed on the other side.
			return r.rearrangeAtTarget(src.plain(src.layout.Type), dst, src, t)
		}
	}
	if src.onHost() || src.memory.converter == nil {
		return errors.ErrUnsupported
	}
	switch {
	case src.reaches(dst):
		return r.convert(src, dst, src, t)
	case dst.onHost() && src.dense() &&
		(src.layout.NBytes() <= smallEnough || src.layout.ItemSize() < dst.layout.ItemSize() ||
			(src.layout.Type == dst.layout.Type && !dst.dense())):
		return errors.ErrUnsupported
	}
	return r.rearrangeAtSource(dst.plain(dst.layout.Type), dst, src, t)
}

// deviceConverts reports whether devices can be asked to convert one type to the
// other. Elements of one type they only move.
func deviceConverts(to, from arrayiface.ElementType) bool {
	return to == from || deviceElement(to).Kind != backends.Opaque && deviceElement(from).Kind != backends.Opaque
}

// reaches reports whether kernels on p's device can use q in place.
func (p piece) reaches(q piece) bool {
	if q.memory == nil || q.memory.backend != p.memory.backend {
		return false
	}
	return q.memory.kind == backends.Pinned || q.memory.region.Allocator.EveryDevice() ||
		q.memory.region.Device == p.memory.region.Device
}

// plain is the layout of p's elements as type t without gaps: in p's own order where that has none, else in C order.
func (p piece) plain(t arrayiface.ElementType) arrayiface.Layout {
	if t == p.layout.Type && p.dense() {
		return p.layout
	}
	layout, err := p.layout.WithType(t)
	if err != nil {
		// Only a shape too large for 63 bits fails, and this one's elements exist.
		panic(err)
	}
	return layout
}

// rearrangeAtTarget brings the source's elements to dst's device in the given layout, from which that puts them in
// their places. The error is errors.ErrUnsupported, and dst is as it was, if the device cannot or has no room.
func (r *Runtime) rearrangeAtTarget(layout arrayiface.Layout, dst, src piece, t Transfer) error {
	stage := dst.beside(layout)
	return r.withScratch(&stage, dst.converts(dst, stage), func() error {
		if err := r.copyElements(stage, src, t); err != nil {
			return err
		}
		return r.convert(dst, dst, stage, t)
	})
}

// rearrangeAtSource has src's device put the elements into the given layout, and
// brings them to dst. The error is as rearrangeAtTarget's.
func (r *Runtime) rearrangeAtSource(layout arrayiface.Layout, dst, src piece, t Transfer) error {
	stage := src.beside(layout)
	return r.withScratch(&stage, src.converts(stage, src), func() error {
		if err := r.convert(src, stage, src, t); err != nil {
			return err
		}
		return r.copyElements(dst, stage, t)
	})
}

// withScratch runs do with scratch memory for stage, if it is of any use.
func (r *Runtime) withScratch(stage *piece, use bool, do func() error) error {
	if !use {
		return errors.ErrUnsupported
	}
	between, err := r.scratch(*stage, stage.layout.NBytes())
	if outOfMemory(err) {
		return errors.ErrUnsupported
	}
	if err != nil {
		return err
	}
	stage.memory, stage.address = between, between.region.Address
	err = do()
	if released := between.Release(); err == nil {
		err = released
	}
	return err
}

// beside is elements that are to be in memory of p's device, on p's stream.
func (p piece) beside(layout arrayiface.Layout) piece {
	return piece{memory: p.memory, layout: layout, stream: p.stream, stop: p.stop}
}

// converts reports whether side's device would convert src to dst.
func (side piece) converts(dst, src piece) bool {
	to, from := conversion(dst, src)
	return side.memory.converter.Converts(to, from, side.stream)
}

// scratch is memory on p's device for as long as one operation takes: from a stream-ordered pool where there is one,
// since giving other memory back waits for the device.
func (r *Runtime) scratch(p piece, size int) (*Memory, error) {
	own := p.memory.region.Allocator
	for _, a := range backends.Allocators() {
		if a.Ordered() && a.Backend() == own.Backend() {
			m, err := r.Allocate(a, p.memory.region.Device, size, p.stream, false)
			if !errors.Is(err, backends.ErrUnavailable) {
				return m, err
			}
		}
	}
	return r.Allocate(own, p.memory.region.Device, size, p.stream, false)
}

// convert has side's device make dst's elements those of src; it reaches both.
func (r *Runtime) convert(side, dst, src piece, t Transfer) error {
	if r.tracing() {
		r.tracef("convert %d elements %s to %s on device %d from %#x to %#x", dst.layout.Count(),
			src.layout.Type, dst.layout.Type, side.memory.context(), src.address, dst.address)
	}
	to, from := conversion(dst, src)
	return side.enqueue(dst, src, t, func(w *order.Work) (backends.Progress, error) {
		return backends.Reading | backends.Writing, side.memory.converter.Convert(to, from, w.Stream)
	})
}

// conversion is what a device is told. Elements of one type it only moves.
func conversion(dst, src piece) (to, from backends.Strided) {
	to, from = dst.strided(), src.strided()
	if dst.layout.Type == src.layout.Type {
		to.Element.Kind, from.Element.Kind = backends.Opaque, backends.Opaque
	}
	return to, from
}

func (p piece) strided() backends.Strided {
	return backends.Strided{Region: p.region(), Element: deviceElement(p.layout.Type), Shape: p.layout.Shape,
		Strides: p.layout.Strides}
}

// deviceElement is t as devices are told of it: only by its size if they cannot convert it.
func deviceElement(t arrayiface.ElementType) backends.Element {
	kinds := [...]backends.ElementKind{
		arrayiface.KindBool:     backends.Boolean,
		arrayiface.KindSigned:   backends.Signed,
		arrayiface.KindUnsigned: backends.Unsigned,
		arrayiface.KindFloat:    backends.Float,
		arrayiface.KindComplex:  backends.ComplexNumber,
	}
	kind := kinds[t.Kind()]
	switch {
	case !t.OnDevices():
		kind = backends.Opaque
	case t == arrayiface.BFloat16:
		kind = backends.BrainFloat
	}
	return backends.Element{Kind: kind, Size: t.Size()}
}

// fillStrided sets elements with gaps between them on a device, from one that
// stands for all. The error is errors.ErrUnsupported where the device cannot.
func (r *Runtime) fillStrided(dst piece, pattern []byte, t Transfer) error {
	if dst.onHost() || dst.memory.converter == nil || dst.layout.OverlapsItself() {
		return errors.ErrUnsupported
	}
	one := dst.beside(dst.layout)
	one.layout.Strides = make([]int, len(dst.layout.Shape))
	if !dst.converts(dst, one) {
		return errors.ErrUnsupported
	}
	between, err := r.scratch(dst, len(pattern))
	if outOfMemory(err) {
		return errors.ErrUnsupported
	}
	if err != nil {
		return err
	}
	one.memory, one.address = between, between.region.Address
	if err = one.fillContiguous(pattern, 1, Async); err == nil {
		err = r.convert(dst, dst, one, t)
	}
	if released := between.Release(); err == nil {
		err = released
	}
	return err
}

// copyManaged is copyElements between memory of one runtime's that both its devices
// and the host reach: what is large stays on the devices, where it was used last in all
// likelihood. The error is errors.ErrUnsupported, and nothing was done, for all else.
func (r *Runtime) copyManaged(dst, src piece, t Transfer) error {
	if dst.memory.backend != src.memory.backend || dst.layout.NBytes() <= smallEnough ||
		arrayiface.Overlap(uintptr(dst.address), dst.layout, uintptr(src.address), src.layout) {
		return errors.ErrUnsupported
	}
	if dst.layout.Equal(src.layout) && dst.dense() {
		return r.copyBytes(dst, src, t)
	}
	if src.memory.converter == nil || !src.reaches(dst) || dst.layout.OverlapsItself() ||
		!deviceConverts(dst.layout.Type, src.layout.Type) {
		return errors.ErrUnsupported
	}
	return r.convert(src, dst, src, t)
}

func (p piece) managed() bool { return p.memory != nil && p.memory.kind == backends.Managed }
