package arrayiface

import (
	"fmt"
	"slices"
)

// WithType is a C-ordered layout of the same shape and another element type. It is a ValueError if the array would then
// be too large, a TypeError if t is not valid.
func (l Layout) WithType(t ElementType) (Layout, error) { return NewLayout(t, l.Shape, nil) }

// Transpose reverses the order of the dimensions.
func (l Layout) Transpose() Layout {
	t := l.clone()
	slices.Reverse(t.Shape)
	slices.Reverse(t.Strides)
	return t
}

// Index picks index i of dimension dim, which the result lacks. byteOffset is where its element zero lies, in bytes
// from that of l. It is a ValueError if dim is not in [0, NDim) or i not in [0, Shape[dim]).
func (l Layout) Index(dim, i int) (view Layout, byteOffset int, err error) {
	if err := l.checkDim("index", dim); err != nil {
		return Layout{}, 0, err
	}
	if i < 0 || i >= l.Shape[dim] {
		return Layout{}, 0, valueError("index", fmt.Sprint(i), "out of range for dimension %d of size %d", dim, l.Shape[dim])
	}
	// The only index of a dimension of size 1 is 0, whatever its stride.
	byteOffset = i * l.Strides[dim]
	view = l.clone()
	view.Shape = slices.Delete(view.Shape, dim, dim+1)
	view.Strides = slices.Delete(view.Strides, dim, dim+1)
	return view, byteOffset, nil
}

// Slice picks the indices start, start+step, … before stop of dimension dim, as Python's range does. The three are as
// slice.indices(Shape[dim]) returns them: for a positive step start and stop are in [0, size], for a negative one in
// [-1, size-1]. Anything else is a ValueError, as are a step of 0 and a dim that is not in [0, NDim). byteOffset is
// where the result's element zero lies, in bytes from that of l; it is 0 if the slice has no elements.
func (l Layout) Slice(dim, start, stop, step int) (view Layout, byteOffset int, err error) {
	if err := l.checkDim("slice", dim); err != nil {
		return Layout{}, 0, err
	}
	value := tuple([]int{start, stop, step})
	if step == 0 {
		return Layout{}, 0, valueError("slice", value, "step must not be 0")
	}
	size := l.Shape[dim]
	low, high := 0, size
	if step < 0 {
		low, high = -1, size-1
	}
	if start < low || start > high || stop < low || stop > high {
		return Layout{}, 0, valueError("slice", value,
			"start and stop must be in [%d, %d] for dimension %d of size %d", low, high, dim, size)
	}
	view = l.clone()
	count := sliceCount(start, stop, step)
	view.Shape[dim] = count
	if count > 1 {
		view.Strides[dim] *= step // shorter than the dimension is, so it cannot overflow
	}
	if count > 0 {
		byteOffset = start * l.Strides[dim]
	}
	return view, byteOffset, nil
}

// sliceCount is the length of Python's range(start, stop, step).
func sliceCount(start, stop, step int) int {
	ahead := stop - start
	if step < 0 {
		ahead = -ahead
	}
	if ahead <= 0 {
		return 0
	}
	return int((uint(ahead)-1)/distance(step)) + 1
}

// Broadcast repeats the array to a larger shape by NumPy's rules: shapes are aligned at their last dimension; a
// dimension of size 1, or a missing one, repeats with stride 0. It is a ValueError if another dimension differs or
// [NewLayout] refuses the shape. The elements of the result overlap: do not write through it.
func (l Layout) Broadcast(shape []int) (Layout, error) {
	lead := len(shape) - l.NDim()
	if lead < 0 {
		return Layout{}, valueError("shape", tuple(shape), "has fewer dimensions than the array of shape %s", tuple(l.Shape))
	}
	strides := make([]int, len(shape))
	for i, n := range l.Shape {
		switch {
		case n == shape[lead+i]:
			strides[lead+i] = l.Strides[i]
		case n != 1:
			return Layout{}, valueError("shape", tuple(shape), "cannot broadcast an array of shape %s to it", tuple(l.Shape))
		}
	}
	return NewLayout(l.Type, shape, strides)
}

func (l Layout) checkDim(key string, dim int) error {
	if dim < 0 || dim >= l.NDim() {
		return valueError(key, "", "no dimension %d in an array of %d dimensions", dim, l.NDim())
	}
	return nil
}

func (l Layout) clone() Layout {
	return Layout{Type: l.Type, Shape: slices.Clone(l.Shape), Strides: slices.Clone(l.Strides)}
}
