package elements

import (
	"fmt"
	"slices"
	"unsafe"

	ai "hamr/arrayiface"
)

// CopyStrided writes each element of the array at src to the same place of the array at dst, converted by the rules in
// the package's documentation. Both layouts have the same shape; strides are in bytes and may be 0, negative or no
// multiple of the element's size. The arrays share no memory, or are one and the same. Where dst repeats an element by
// a stride of 0 the last value stays; where its elements overlap otherwise, which value stays is not defined.
func CopyStrided(dst unsafe.Pointer, dl ai.Layout, src unsafe.Pointer, sl ai.Layout) error {
	if !slices.Equal(dl.Shape, sl.Shape) {
		return fmt.Errorf("elements: cannot copy shape %v to shape %v", sl.Shape, dl.Shape)
	}
	if err := checkPair(dl.Type, sl.Type); err != nil {
		return err
	}
	if dl.ContiguousC() && sl.ContiguousC() {
		if n := dl.Count(); n > 0 {
			convert(dst, dl.Type, src, sl.Type, n)
		}
		return nil
	}
	w := plan(dst, dl, src, sl)
	if w.dt == w.st && w.dst == w.src && w.sameStrides() {
		return nil
	}
	if len(w.dims) == 1 && w.dims[0].d == w.dsize && w.dims[0].s == w.ssize {
		convert(w.dst, w.dt, w.src, w.st, w.dims[0].n)
		return nil
	}
	bytes := w.dsize
	for _, d := range w.dims {
		bytes *= d.n
	}
	if workers := workersFor(bytes); workers > 1 && !dl.OverlapsItself() {
		axis := w.axisToSplit(workers)
		inParallel(w.dims[axis].n, bytes, func(from, to int) { w.part(axis, from, to).do() })
		return nil
	}
	w.do()
	return nil
}

// dim is one dimension of both arrays: how many, and the strides in bytes.
type dim struct{ n, d, s int }

// work is a copy with its dimensions put in the best order: outermost first,
// the last two being the plane that move2D and convertPlane walk.
type work struct {
	dst, src     unsafe.Pointer
	dt, st       ai.ElementType
	dsize, ssize int
	dims         []dim
	transposed   bool
}

func plan(dst unsafe.Pointer, dl ai.Layout, src unsafe.Pointer, sl ai.Layout) *work {
	w := &work{dst: dst, src: src, dt: dl.Type, st: sl.Type, dsize: dl.Type.Size(), ssize: sl.Type.Size()}
	for i, n := range dl.Shape {
		d, s := dl.Strides[i], sl.Strides[i]
		if n > 1 && d == 0 {
			w.src = unsafe.Add(w.src, (n-1)*s)
			n = 1
		}
		if n == 1 {
			continue
		}
		if d < 0 {
			w.dst, w.src = unsafe.Add(w.dst, (n-1)*d), unsafe.Add(w.src, (n-1)*s)
			d, s = -d, -s
		}
		w.dims = append(w.dims, dim{n, d, s})
	}
	slices.SortStableFunc(w.dims, func(a, b dim) int {
		if a.d != b.d {
			return b.d - a.d
		}
		return magnitude(b.s) - magnitude(a.s)
	})
	w.coalesce()
	w.choosePlane()
	return w
}

func magnitude(v int) int { return max(v, -v) }

func (w *work) coalesce() {
	merged := w.dims[:0]
	for _, d := range w.dims {
		if last := len(merged) - 1; last >= 0 && merged[last].d == d.n*d.d && merged[last].s == d.n*d.s {
			merged[last] = dim{merged[last].n * d.n, d.d, d.s}
			continue
		}
		merged = append(merged, d)
	}
	w.dims = merged
	if len(w.dims) == 0 {
		w.dims = append(w.dims, dim{1, w.dsize, w.ssize})
	}
}

// choosePlane moves the dimension that src likes best next to the one that dst likes best. When they differ, the plane
// is walked in tiles that keep the cache lines of both.
func (w *work) choosePlane() {
	last := len(w.dims) - 1
	best := last
	for i, d := range w.dims {
		if d.s != 0 && (w.dims[best].s == 0 || magnitude(d.s) < magnitude(w.dims[best].s)) {
			best = i
		}
	}
	if best == last {
		return
	}
	chosen := w.dims[best]
	w.dims = slices.Insert(slices.Delete(w.dims, best, best+1), last-1, chosen)
	w.transposed = w.dims[last].s != 0
}

func (w *work) sameStrides() bool {
	return !slices.ContainsFunc(w.dims, func(d dim) bool { return d.d != d.s })
}

// axisToSplit prefers the outermost dimension that gives every worker some, as its parts lie apart.
func (w *work) axisToSplit(workers int) int {
	longest := 0
	for i, d := range w.dims {
		if d.n >= 4*workers {
			return i
		}
		if d.n > w.dims[longest].n {
			longest = i
		}
	}
	return longest
}

func (w *work) part(axis, from, to int) *work {
	p := *w
	p.dims = slices.Clone(w.dims)
	d := &p.dims[axis]
	p.dst, p.src = unsafe.Add(p.dst, from*d.d), unsafe.Add(p.src, from*d.s)
	d.n = to - from
	return &p
}

// do walks the outer dimensions and hands each plane on.
func (w *work) do() {
	plane := w.dims[max(len(w.dims)-2, 0):]
	if len(plane) == 1 {
		plane = []dim{{1, 0, 0}, plane[0]}
	}
	outer := w.dims[:max(len(w.dims)-2, 0)]
	c := w.copier(plane[0], plane[1])
	defer c.close()
	at := make([]int, len(outer))
	d, s := 0, 0
	for {
		c.plane(unsafe.Add(w.dst, d), unsafe.Add(w.src, s))
		i := len(outer) - 1
		for ; i >= 0; i-- {
			d, s = d+outer[i].d, s+outer[i].s
			if at[i]++; at[i] < outer[i].n {
				break
			}
			d, s = d-at[i]*outer[i].d, s-at[i]*outer[i].s
			at[i] = 0
		}
		if i < 0 {
			return
		}
	}
}
