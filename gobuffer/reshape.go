package gobuffer

import (
	"fmt"

	"hamr/arrayiface"
)

// Copying says whether an operation may copy that gives a view where it can.
type Copying uint8

// When to copy.
const (
	CopyIfNeeded Copying = iota
	CopyNever
	CopyAlways
)

// String returns "if needed", "never" or "always".
func (c Copying) String() string {
	switch c {
	case CopyIfNeeded:
		return "if needed"
	case CopyNever:
		return "never"
	case CopyAlways:
		return "always"
	}
	return fmt.Sprintf("Copying(%d)", uint8(c))
}

// Reshape returns the same elements, in C order, in another shape, of which one entry may be -1 and stands for what the
// others leave. It is a view of the same memory where strides reach them there, else a copy in C order by the same
// allocator and on the same device; c may forbid or demand the copy. view says which. The caller closes it. The errors
// are those of [arrayiface.Layout.Reshape], and an *ArgumentError where only a copy would do and c is CopyNever.
func (a *Array) Reshape(shape []int, c Copying) (reshaped *Array, view bool, err error) {
	if err := a.check(); err != nil {
		return nil, false, err
	}
	layout, inPlace, err := a.layout.Reshape(shape)
	if err != nil {
		return nil, false, err
	}
	if inPlace && c != CopyAlways {
		reshaped, err = a.viewAt(layout, 0, nil)
		return reshaped, true, err
	}
	if c == CopyNever {
		return nil, false, valueError("copy", "False",
			"True or None, since the elements cannot be reached in that shape without a copy")
	}
	if layout, err = arrayiface.NewLayout(layout.Type, layout.Shape, nil); err != nil {
		return nil, false, err
	}
	if reshaped, err = a.Copy(a.options, a.layout.Type); err != nil {
		return nil, false, err
	}
	reshaped.layout = layout
	return reshaped, false, nil
}
