package arrayiface

import "slices"

// Reshape gives the same elements, in C order, another shape. One entry of shape may be -1: it stands for what the
// others leave. inPlace is true if the elements lie so that strides reach them in that shape; the result then has these
// strides. Else it takes a copy, and the result is its layout, which is C-contiguous. This is NumPy's rule for when
// reshape gives a view.
//
// It is a ValueError if shape has another number of elements, more than one -1, or one that the others leave nothing
// definite for, or if [NewLayout] refuses it.
func (l Layout) Reshape(shape []int) (r Layout, inPlace bool, err error) {
	if shape, err = l.inferred(shape); err != nil {
		return Layout{}, false, err
	}
	if r, err = NewLayout(l.Type, shape, nil); err != nil {
		return Layout{}, false, err
	}
	if r.Count() != l.Count() {
		return Layout{}, false, valueError("shape", tuple(shape), "has %d elements, the array of shape %s has %d", r.Count(),
			tuple(l.Shape), l.Count())
	}
	if strides, ok := l.stridesAs(shape); ok {
		r.Strides, inPlace = strides, true
	}
	return r, inPlace, nil
}

// inferred is shape with a size in place of -1.
func (l Layout) inferred(shape []int) ([]int, error) {
	unknown := slices.Index(shape, -1)
	if unknown < 0 {
		return shape, nil
	}
	others := slices.Delete(slices.Clone(shape), unknown, unknown+1)
	if slices.Contains(others, -1) {
		return nil, valueError("shape", tuple(shape), "only one size can be -1")
	}
	known, err := CountElements(l.Type, others)
	if err != nil {
		return nil, err
	}
	if known == 0 || l.Count()%known != 0 {
		return nil, valueError("shape", tuple(shape), "no size in place of -1 makes it the %d elements of shape %s",
			l.Count(), tuple(l.Shape))
	}
	return slices.Insert(others, unknown, l.Count()/known), nil
}

// stridesAs gives the strides by which a shape of as many elements reaches them in
// the same order, if there are any. From the first dimension on, it takes as few of
// both shapes as have equal counts: those of l must follow one another as one would.
func (l Layout) stridesAs(shape []int) (strides []int, ok bool) {
	strides = CStrides(shape, l.ItemSize())
	if l.Count() == 0 {
		return strides, true
	}
	mine := make([]int, 0, l.NDim()) // those whose strides mean something
	for i, n := range l.Shape {
		if n > 1 {
			mine = append(mine, i)
		}
	}
	for to := 0; len(mine) > 0; {
		from, have, want := to, 1, 1
		taken := 0
		for have != want || taken == 0 {
			if have <= want {
				if taken > 0 && l.Strides[mine[taken-1]] != l.Shape[mine[taken]]*l.Strides[mine[taken]] {
					return nil, false
				}
				have *= l.Shape[mine[taken]]
				taken++
			} else {
				want *= shape[to]
				to++
			}
		}
		step := l.Strides[mine[taken-1]]
		for i := to - 1; i >= from; i-- {
			strides[i] = step
			step *= shape[i]
		}
		mine = mine[taken:]
	}
	return strides, true
}
