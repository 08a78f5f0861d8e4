package gobuffer

import (
	"cmp"
	"errors"
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// inMemoryOrder returns the same elements of both with dimensions of more than one index alone, ordered as the target's
// memory is, outermost first, and none of which goes down there. Of the elements that one of the target is repeated
// for, the last stays, as in NumPy.
func inMemoryOrder(dst, src piece) (piece, piece) {
	type axis struct{ n, d, s int }
	var axes []axis
	for i, n := range dst.layout.Shape {
		d, s := dst.layout.Strides[i], src.layout.Strides[i]
		switch {
		case n == 1:
			continue
		case d == 0:
			src.address = offset(src.address, (n-1)*s)
			continue
		case d < 0:
			dst.address, src.address = offset(dst.address, (n-1)*d), offset(src.address, (n-1)*s)
			d, s = -d, -s
		}
		axes = append(axes, axis{n, d, s})
	}
	slices.SortStableFunc(axes, func(a, b axis) int { return cmp.Compare(b.d, a.d) })
	shape, to, from := make([]int, len(axes)), make([]int, len(axes)), make([]int, len(axes))
	for i, a := range axes {
		shape[i], to[i], from[i] = a.n, a.d, a.s
	}
	dst.layout = arrayiface.Layout{Type: dst.layout.Type, Shape: shape, Strides: to}
	src.layout = arrayiface.Layout{Type: src.layout.Type, Shape: shape, Strides: from}
	return dst, src
}

// runs says which bytes of arrays whose dimensions are in memory's order follow one
// another: so many, again and again along the first outer dimensions.
func runs(layouts ...arrayiface.Layout) (length, outer int) {
	length, outer = layouts[0].ItemSize(), layouts[0].NDim()
	follows := func(l arrayiface.Layout) bool { return l.Strides[outer-1] == length }
	for outer > 0 && !slices.ContainsFunc(layouts, func(l arrayiface.Layout) bool { return !follows(l) }) {
		length *= layouts[0].Shape[outer-1]
		outer--
	}
	return length, outer
}

// eachRun calls visit with where each run starts in two arrays of one shape, relative
// to element zero, until that fails.
func eachRun(shape, first, second []int, visit func(a, b int) error) error {
	index := make([]int, len(shape))
	a, b := 0, 0
	for {
		if err := visit(a, b); err != nil {
			return err
		}
		i := len(shape) - 1
		for ; i >= 0; i-- {
			a, b = a+first[i], b+second[i]
			if index[i]++; index[i] < shape[i] {
				break
			}
			a, b = a-index[i]*first[i], b-index[i]*second[i]
			index[i] = 0
		}
		if i < 0 {
			return nil
		}
	}
}

// takesRunsOf reports whether each of dst's runs is one of src's, too, and dst's
// runtime can copy it. Both are in dst's memory order.
func (dst piece) takesRunsOf(src piece) bool {
	if dst.layout.Type != src.layout.Type ||
		(src.memory.backend != dst.memory.backend && src.memory.kind != backends.Pageable) {
		return false
	}
	own, _ := runs(dst.layout)
	shared, _ := runs(dst.layout, src.layout)
	return own == shared && !dst.overlaps(src)
}

// copyRuns makes dst's elements those of src, where dst takesRunsOf src, by a copy of each run.
func (r *Runtime) copyRuns(dst, src piece, t Transfer) error {
	length, outer := runs(dst.layout, src.layout)
	if outer == 0 {
		return r.copyBytes(dst, src, t)
	}
	shape := dst.layout.Shape[:outer]
	if r.tracing() {
		r.tracef("copy %d bytes in runs of %d %s device %d at %#x to %s device %d at %#x", dst.layout.NBytes(), length,
			src.memory.region.Allocator, src.memory.region.Device, src.address,
			dst.memory.region.Allocator, dst.memory.region.Device, dst.address)
	}
	return dst.enqueue(dst, src, t, func(w *order.Work) (all backends.Progress, err error) {
		to, from := dst.region(), src.region()
		begun := false
		err = eachRun(shape, dst.layout.Strides, src.layout.Strides, func(d, s int) error {
			to.Address, from.Address = offset(dst.address, d), offset(src.address, s)
			left, err := dst.memory.copyUntil(dst.stopWith(src), to, from, length, w.Stream)
			all, begun = all|left, begun || err == nil
			return err
		})
		if err != nil && begun && !(errors.Is(err, backends.ErrStopped) && dst.memory.stopper() != nil) {
			dst.memory.finish(w)
		}
		return all, err
	})
}

// fillRuns sets the elements of dst, which the host does not reach, to one element's bytes, by a fill of each run.
func (r *Runtime) fillRuns(dst piece, pattern []byte, t Transfer) error {
	dst, _ = inMemoryOrder(dst, dst)
	length, outer := runs(dst.layout)
	shape := dst.layout.Shape[:outer]
	if r.tracing() {
		r.tracef("fill %d bytes in runs of %d %s device %d at %#x", dst.layout.NBytes(), length,
			dst.memory.region.Allocator, dst.memory.region.Device, dst.address)
	}
	return dst.enqueue(dst, dst, t, func(w *order.Work) (backends.Progress, error) {
		to := dst.region()
		begun := false
		err := eachRun(shape, dst.layout.Strides, dst.layout.Strides, func(d, _ int) error {
			to.Address = offset(dst.address, d)
			err := dst.memory.backend.Fill(to, pattern, length/len(pattern), w.Stream)
			begun = begun || err == nil
			return err
		})
		if err != nil && begun {
			dst.memory.finish(w)
		}
		return backends.Reading | backends.Writing, err
	})
}

// finish waits for what was enqueued on w's stream before something failed. Nobody
// else knows of it, and the memory that it uses may go now.
func (m *Memory) finish(w *order.Work) {
	if m.streams == nil {
		return
	}
	if m.streams.Synchronize(m.context(), w.Stream) != nil {
		// A wait reports what went wrong before it. Only a second one says whether the work is over.
		_ = m.streams.Synchronize(m.context(), w.Stream)
	}
}
