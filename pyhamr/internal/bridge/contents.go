package bridge

import (
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// on calls f with the array that d describes.
func on(d *Descriptor, f func(a *gobuffer.Array) error) error { return onUntil(nil, d, f) }

// onUntil is on until stop asks.
func onUntil(stop *backends.Stop, d *Descriptor, f func(a *gobuffer.Array) error) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	a, err := d.Array()
	if err != nil {
		return err
	}
	defer a.Close()
	return f(a.Until(stop))
}

// onIn is on, perhaps in slices.
func onIn(slices bool, d *Descriptor, f func(a *gobuffer.Array) error) error {
	if !slices {
		return on(d, f)
	}
	return inSlices(func(stop *backends.Stop) error { return onUntil(stop, d, f) })
}

// onBoth calls f on the arrays that d and other describe, until stop asks. other may be nil.
func onBoth(stop *backends.Stop, d, other *Descriptor, f func(a, b *gobuffer.Array) error) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	a, err := d.borrowed()
	if err != nil {
		return err
	}
	defer a.Close()
	if other == nil {
		return f(a.Until(stop), nil)
	}
	b, err := other.borrowed()
	if err != nil {
		return err
	}
	defer b.Close()
	return f(a.Until(stop), b.Until(stop))
}

// onBothIn is onBoth for bytes that come from other, in slices where that may take long.
func onBothIn(bytes func() int, d, other *Descriptor, f func(a, b *gobuffer.Array) error) (err error) {
	if !d.prompt() || other == nil {
		return onBoth(nil, d, other, f)
	}
	defer Guard(&err)
	m := movement{to: backends.Allocator(d.Allocator), from: backends.Allocator(other.Allocator), bytes: bytes(),
		waits: d.waits()}
	slices, err := m.long(d, other)
	if err != nil {
		return err
	}
	if !slices {
		return onBoth(nil, d, other, f)
	}
	return inSlices(func(stop *backends.Stop) error { return onBoth(stop, d, other, f) })
}

// then is f that stores the array if it succeeds.
func then(
	store func(a *gobuffer.Array, before *Descriptor), d *Descriptor, f func(a, b *gobuffer.Array) error,
) func(a, b *gobuffer.Array) error {
	return func(a, b *gobuffer.Array) error {
		err := f(a, b)
		if err == nil {
			store(a, d)
		}
		return err
	}
}

// Change calls f on the array that d describes, and on other's where that is not nil; if it succeeds, it describes at
// result what the array has become. It is the body of all methods of arrays that the bridge has no function for.
func Change(d, other, result *Descriptor, f func(a, b *gobuffer.Array) error) error {
	return onBoth(nil, d, other, then(result.Store, d, f))
}

// Resize makes the array hold the elements of a shape.
func Resize(d *Descriptor, shape []int, value, result *Descriptor) error {
	return Change(d, value, result, func(a, v *gobuffer.Array) error { return a.ResizeShape(slices.Clone(shape), v) })
}

// Append adds the elements of other behind the last.
func Append(d, other, result *Descriptor) error {
	return onBothIn(other.bytes, d, other, then(result.Store, d, (*gobuffer.Array).Append))
}

// Assign replaces contents and shape by other's.
func Assign(d, other, result *Descriptor) error {
	return onBothIn(other.bytes, d, other, then(result.Store, d, (*gobuffer.Array).Assign))
}

// SetElements writes n elements of other, from start on, from element at on.
func SetElements(d *Descriptor, at int, other *Descriptor, start, n int, result *Descriptor) error {
	return onBothIn(other.bytes, d, other, then(result.storeWritten, d, func(a, b *gobuffer.Array) error {
		return a.Set(at, b, start, n)
	}))
}

// WriteElements sets every element from other, broadcast.
func WriteElements(d, other, result *Descriptor) error {
	return onBothIn(d.bytes, d, other, then(result.storeWritten, d, (*gobuffer.Array).Write))
}

// Fill sets every element to the single element of value.
func Fill(d, value, result *Descriptor) error {
	return onBoth(nil, d, value, then(result.storeWritten, d, (*gobuffer.Array).Fill))
}

// Move takes the contents to another allocator or device.
func Move(d *Descriptor, allocator backends.Allocator, device int, result *Descriptor) (err error) {
	defer Guard(&err)
	move := then(result.Store, d, func(a, _ *gobuffer.Array) error { return a.Move(allocator, device) })
	slices, err := d.movementTo(allocator).long(d)
	if err != nil {
		return err
	}
	if slices {
		device, slices = place(allocator, device)
	}
	if !slices {
		return onBoth(nil, d, nil, move)
	}
	return inSlices(func(stop *backends.Stop) error { return onBoth(stop, d, nil, move) })
}

// Copy describes at result a new array with the same elements, converted.
func Copy(d *Descriptor, allocator backends.Allocator, device int, element arrayiface.ElementType,
	result *Descriptor) (err error) {
	defer Guard(&err)
	slices, err := d.movementTo(allocator).long(d)
	if err != nil {
		return err
	}
	if slices {
		device, slices = place(allocator, device)
	}
	return onIn(slices, d, func(a *gobuffer.Array) error {
		o := a.Options()
		o.Allocator, o.Device = allocator, device
		copied, err := a.Copy(o, element)
		if err != nil {
			return err
		}
		defer copied.Close()
		result.Store(copied, nil)
		return nil
	})
}

// Reshape describes at result the elements in another shape, of which one size may be -1,
// and reports whether that is a view.
func Reshape(d *Descriptor, shape []int, copying gobuffer.Copying, result *Descriptor) (view bool, err error) {
	err = on(d, func(a *gobuffer.Array) error {
		reshaped, shared, err := a.Reshape(slices.Clone(shape), copying)
		if err != nil {
			return err
		}
		defer reshaped.Close()
		result.Store(reshaped, d)
		view = shared
		return nil
	})
	return view, err
}

// Text gives out the elements as HAMR prints them, shortened beyond limit.
func Text(d *Descriptor, limit int, give func(text string)) (err error) {
	defer Guard(&err)
	// Of what a device has, no more than is printed comes to the host.
	slices, err := movement{to: backends.Malloc, from: backends.Allocator(d.Allocator), bytes: askDownBytes}.long(d)
	if err != nil {
		return err
	}
	return onIn(slices, d, func(a *gobuffer.Array) error {
		text, err := a.Text(limit)
		if err == nil {
			give(text)
		}
		return err
	})
}

// Synchronize waits until nothing of hamr's touches the array's memory.
func Synchronize(d *Descriptor) error {
	return on(d, func(a *gobuffer.Array) error { return a.Synchronize() })
}
