package pyhamr

import (
	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

// change calls f on the array at source and, if it succeeds, describes the
// changed array at result.
func change(source, result uint64, f func(a *gobuffer.Array) error) (int, error) {
	return onArrays(func() error {
		from := bridge.At(source)
		a, err := from.Array()
		if err != nil {
			return err
		}
		defer a.Close()
		if err := f(a); err != nil {
			return err
		}
		bridge.At(result).Store(a, from)
		return nil
	})
}

// withOther is change for an operation that reads a second array; other 0 is
// none.
func withOther(source, other, result uint64, f func(a, b *gobuffer.Array) error) (int, error) {
	return change(source, result, func(a *gobuffer.Array) error {
		if other == 0 {
			return f(a, nil)
		}
		b, err := bridge.At(other).Array()
		if err != nil {
			return err
		}
		defer b.Close()
		return f(a, b)
	})
}

// Reserve makes room for n elements; new room holds the single element at value,
// if that is not 0.
//
//hamr:blocking
func Reserve(source uint64, n int, value, result uint64) (int, error) {
	return withOther(source, value, result, func(a, v *gobuffer.Array) error { return a.Reserve(n, v) })
}

// Resize makes the array hold the shape's elements: integers joined by commas.
//
//hamr:blocking
func Resize(source uint64, shape string, value, result uint64) (int, error) {
	return withOther(source, value, result, func(a, v *gobuffer.Array) error {
		dimensions, err := integers(shape)
		if err != nil {
			return err
		}
		return a.ResizeShape(dimensions, v)
	})
}

// Append adds the elements of other behind the last.
//
//hamr:blocking
func Append(source, other, result uint64) (int, error) {
	return withOther(source, other, result, func(a, b *gobuffer.Array) error { return a.Append(b) })
}

// Assign replaces contents and shape by other's.
//
//hamr:blocking
func Assign(source, other, result uint64) (int, error) {
	return withOther(source, other, result, func(a, b *gobuffer.Array) error { return a.Assign(b) })
}

// Set writes n elements of other, from start on, from element at on.
//
//hamr:blocking
func Set(source uint64, at int, other uint64, start, n int, result uint64) (int, error) {
	return withOther(source, other, result, func(a, b *gobuffer.Array) error { return a.Set(at, b, start, n) })
}

// Write sets every element from other, broadcast.
//
//hamr:blocking
func Write(source, other, result uint64) (int, error) {
	return withOther(source, other, result, func(a, b *gobuffer.Array) error { return a.Write(b) })
}

// Fill sets every element to the single element at value.
//
//hamr:blocking
func Fill(source, value, result uint64) (int, error) {
	return withOther(source, value, result, func(a, v *gobuffer.Array) error { return a.Fill(v) })
}

// Move takes the contents to another allocator or device.
//
//hamr:blocking
func Move(source uint64, allocator, device int, result uint64) (int, error) {
	return change(source, result, func(a *gobuffer.Array) error {
		return a.Move(backends.Allocator(allocator), device)
	})
}

// Copy describes at result a new array with the same elements, converted.
//
//hamr:blocking
func Copy(source uint64, allocator, device, element int, result uint64) (int, error) {
	return onArrays(func() error {
		a, err := bridge.At(source).Array()
		if err != nil {
			return err
		}
		defer a.Close()
		o := a.Options()
		o.Allocator, o.Device = backends.Allocator(allocator), device
		copied, err := a.Copy(o, arrayiface.ElementType(element))
		if err != nil {
			return err
		}
		defer copied.Close()
		bridge.At(result).Store(copied, nil)
		return nil
	})
}

// Reshape describes at result the elements in another shape: integers joined by commas,
// of which one may be -1. copying is a gobuffer.Copying. It returns 1 for a view, 0 for
// a copy.
//
//hamr:blocking
func Reshape(source uint64, shape string, copying int, result uint64) (int, error) {
	shared := 0
	_, err := onArrays(func() error {
		dimensions, err := integers(shape)
		if err != nil {
			return err
		}
		from := bridge.At(source)
		a, err := from.Array()
		if err != nil {
			return err
		}
		defer a.Close()
		reshaped, view, err := a.Reshape(dimensions, gobuffer.Copying(copying))
		if err != nil {
			return err
		}
		defer reshaped.Close()
		bridge.At(result).Store(reshaped, from)
		if view {
			shared = 1
		}
		return nil
	})
	return shared, err
}

// Text returns the elements as HAMR prints them, shortened beyond limit.
//
//hamr:blocking
func Text(source uint64, limit int) (string, error) {
	text := ""
	_, err := onArrays(func() error {
		a, err := bridge.At(source).Array()
		if err != nil {
			return err
		}
		defer a.Close()
		text, err = a.Text(limit)
		return err
	})
	return text, err
}

// Synchronize waits until nothing of hamr's touches the array's memory.
//
//hamr:blocking
func Synchronize(source uint64) (int, error) {
	return onArrays(func() error {
		a, err := bridge.At(source).Array()
		if err != nil {
			return err
		}
		defer a.Close()
		return a.Synchronize()
	})
}
