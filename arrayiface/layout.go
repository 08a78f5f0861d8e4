package arrayiface

import (
	"math"
	"math/bits"
	"slices"
)

// MaxDimensions is the largest number of dimensions of a [Layout], that of NumPy 2.
const MaxDimensions = 64

// Layout says where the elements of an array lie, relative to the address of element zero (all indices 0). One made by
// [NewLayout], or by the methods of such a one, is checked and never changes: its slices are its own, and must not be
// written to. The methods rely on those checks.
type Layout struct {
	Type  ElementType
	Shape []int
	// Strides are the bytes from one index to the next, one for each dimension, possibly negative or 0. They mean nothing
	// in a dimension of size 1 or in an array without elements (NumPy's relaxed strides).
	Strides []int
}

// CountElements returns the number of elements of an array, whose bytes fit an
// int; the errors are those of [NewLayout].
func CountElements(t ElementType, shape []int) (count int, err error) {
	size := uint64(t.Size())
	if size == 0 {
		return 0, typeError("dtype", quote(t.String()), "not an element type; accepted are %s", acceptedNames())
	}
	if len(shape) > MaxDimensions {
		return 0, valueError("shape", "", "has %d dimensions; at most %d are supported", len(shape), MaxDimensions)
	}
	count = 1
	for _, n := range shape {
		if n < 0 {
			return 0, valueError("shape", tuple(shape), "a dimension must not be negative")
		}
		count *= n
		var above uint64
		if above, size = bits.Mul64(size, uint64(max(n, 1))); above != 0 || size > math.MaxInt {
			return 0, valueError("shape", tuple(shape), "too large; the array of %s does not fit the address space", t)
		}
	}
	return count, nil
}

// NewLayout checks and copies shape and strides; nil strides mean C order.
//
// An element type that is not valid is a TypeError. A ValueError is: more than [MaxDimensions] dimensions, a negative
// one, strides of another length than shape, and an array whose number of bytes, or whose reach from its lowest to its
// highest byte, does not fit an int. A dimension of size 0 does not excuse the others from that, as in NumPy.
func NewLayout(t ElementType, shape, strides []int) (Layout, error) {
	var l Layout
	var err error
	if strides == nil {
		if _, err = CountElements(t, shape); err == nil {
			l = Layout{t, slices.Clone(shape), CStrides(shape, t.Size())}
		}
	} else if l, err = BorrowLayout(t, shape, strides); err == nil {
		l.Shape, l.Strides = slices.Clone(shape), slices.Clone(strides)
	}
	return l, err
}

// BorrowLayout is [NewLayout] without the copies: the result is valid as long as nobody writes to shape and strides.
func BorrowLayout(t ElementType, shape, strides []int) (Layout, error) {
	if _, err := CountElements(t, shape); err != nil {
		return Layout{}, err
	}
	if len(strides) != len(shape) {
		return Layout{}, valueError("strides", tuple(strides),
			"must have one entry for each of the %d dimensions", len(shape))
	}
	if !reachFits(t, shape, strides) {
		return Layout{}, valueError("strides", tuple(strides),
			"too large; the array of shape %s does not fit the address space", tuple(shape))
	}
	return Layout{t, shape, strides}, nil
}

// reachFits reports whether the bytes between the lowest and the highest that the strides reach can be counted. It asks
// so of empty arrays too: then every product of an index and a stride is safe.
func reachFits(t ElementType, shape, strides []int) bool {
	reach := uint64(t.Size())
	for i, n := range shape {
		if n <= 1 {
			continue
		}
		above, step := bits.Mul64(uint64(max(strides[i], -strides[i])), uint64(n-1))
		if above != 0 || step > math.MaxInt-reach {
			return false
		}
		reach += step
	}
	return true
}

// distance is |n| as an unsigned number, so that the smallest int has one.
func distance(n int) uint {
	if n < 0 {
		return -uint(n)
	}
	return uint(n)
}

// CStrides gives the strides, in bytes, of a contiguous array whose last index runs fastest; a dimension of size 0
// counts as 1. shape is one that [NewLayout] accepts: larger ones wrap around.
func CStrides(shape []int, itemSize int) []int {
	strides := make([]int, len(shape))
	PutCStrides(strides, shape, itemSize)
	return strides
}

// PutCStrides is [CStrides] into strides, which has an entry for each dimension.
func PutCStrides(strides, shape []int, itemSize int) {
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = itemSize
		itemSize *= max(shape[i], 1)
	}
}

// FStrides is [CStrides] for an array whose first index runs fastest.
func FStrides(shape []int, itemSize int) []int {
	strides := make([]int, len(shape))
	for i, n := range shape {
		strides[i] = itemSize
		itemSize *= max(n, 1)
	}
	return strides
}

// NDim is the number of dimensions, 0 for a scalar.
func (l Layout) NDim() int { return len(l.Shape) }

// Count is the number of elements, 1 for a scalar.
func (l Layout) Count() int {
	count := 1
	for _, n := range l.Shape {
		count *= n
	}
	return count
}

// ItemSize is the size of one element in bytes.
func (l Layout) ItemSize() int { return l.Type.Size() }

// NBytes is the number of bytes that the elements have, Count times ItemSize.
// The memory they lie in may be larger or smaller: see [Layout.Span].
func (l Layout) NBytes() int { return l.Count() * l.ItemSize() }

// Span gives the bytes that the array touches, [low, high), relative to element zero: low is negative if a stride is.
// Both are 0 if the array has no elements.
func (l Layout) Span() (low, high int) {
	high = l.Type.Size()
	for i, n := range l.Shape {
		if n == 0 {
			return 0, 0
		}
		if n == 1 {
			continue
		}
		if step := l.Strides[i] * (n - 1); step < 0 {
			low += step
		} else {
			high += step
		}
	}
	return low, high
}

// ContiguousC reports whether the elements lie one after the other without
// gaps, the last index running fastest. Strides that mean nothing are ignored.
func (l Layout) ContiguousC() bool {
	step, follows := l.Type.Size(), true
	for i := len(l.Shape) - 1; i >= 0; i-- {
		switch n := l.Shape[i]; n {
		case 0:
			return true
		case 1:
		default:
			follows = follows && l.Strides[i] == step
			step *= n
		}
	}
	return follows
}

// ContiguousF is [Layout.ContiguousC] with the first index running fastest.
func (l Layout) ContiguousF() bool {
	step, follows := l.Type.Size(), true
	for i, n := range l.Shape {
		switch n {
		case 0:
			return true
		case 1:
		default:
			follows = follows && l.Strides[i] == step
			step *= n
		}
	}
	return follows
}

// follows reports whether the strides are the given ones where they matter.
func (l Layout) follows(strides []int) bool {
	if l.Count() == 0 {
		return true
	}
	for i, n := range l.Shape {
		if n > 1 && l.Strides[i] != strides[i] {
			return false
		}
	}
	return true
}

// Equal reports whether both have the same type and shape, and the same
// strides where these matter: two equal layouts at one address are one array.
func (l Layout) Equal(o Layout) bool {
	return l.Type == o.Type && slices.Equal(l.Shape, o.Shape) && l.follows(o.Strides)
}
