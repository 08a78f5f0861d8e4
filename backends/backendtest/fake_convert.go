package backendtest

import (
	"errors"
	"slices"

	"hamr/backends"
)

// Converts is false of elements of two types, and of all with FakeOptions.NoConvert.
func (f *fakeMemory) Converts(dst, src backends.Strided, s backends.Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.enter("Converts", "%s from %s, shape %v, stream %#x", describe(dst.Region),
		describe(src.Region), dst.Shape, s) != nil {
		return false
	}
	return f.moves(dst, src)
}

func (f *fakeMemory) moves(dst, src backends.Strided) bool {
	return !f.options.NoConvert && dst.Element == src.Element
}

// Convert queues a rearrangement of elements of one type.
func (f *fakeMemory) Convert(dst, src backends.Strided, s backends.Stream) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Convert", "%s from %s, shape %v, stream %#x", describe(dst.Region), describe(src.Region),
		dst.Shape, s); err != nil {
		return err
	}
	if !f.moves(dst, src) {
		return errors.ErrUnsupported
	}
	if !slices.Equal(dst.Shape, src.Shape) {
		return f.violate("Convert", "shapes %v and %v", dst.Shape, src.Shape)
	}
	to, low, err := f.viewStrided("Convert", dst)
	if err != nil {
		return err
	}
	from, lowSource, err := f.viewStrided("Convert", src)
	if err != nil {
		return err
	}
	if to.pageable || from.pageable {
		return f.violate("Convert", "a device does not reach pageable memory")
	}
	if err := f.checkWritable("Convert", to); err != nil {
		return err
	}
	stream, err := f.streamFor("Convert", s, to, from)
	if err != nil {
		return err
	}
	f.enqueue(stream, task{run: func() {
		f.onBlock(to.block, "conversion", func() {
			f.onBlock(from.block, "conversion", func() {
				target, source := to.bytes(), from.bytes()
				eachElement(dst.Shape, dst.Strides, src.Strides, func(a, b int) {
					copy(target[a-low:][:dst.Element.Size], source[b-lowSource:])
				})
			})
		})
	}})
	return nil
}

// viewStrided is view for the bytes from the lowest element's on, which lie low
// bytes from element zero.
func (f *fakeMemory) viewStrided(call string, s backends.Strided) (m memory, low int, err error) {
	high := s.Element.Size
	for i, n := range s.Shape {
		if step := s.Strides[i] * (n - 1); step < 0 {
			low += step
		} else {
			high += step
		}
	}
	r := s.Region
	r.Address = backends.Address(int(r.Address) + low)
	m, err = f.view(call, r, high-low)
	return m, low, err
}

// eachElement calls visit with the offsets of each element in two arrays.
func eachElement(shape, first, second []int, visit func(a, b int)) {
	if len(shape) == 0 {
		visit(0, 0)
		return
	}
	for i := range shape[0] {
		eachElement(shape[1:], first[1:], second[1:], func(a, b int) { visit(a+i*first[0], b+i*second[0]) })
	}
}
