package gobuffer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hamr/arrayiface"
)

// leastCapacity is what the first Append reserves, as HAMR does.
const leastCapacity = 8

// Reserve makes room for at least n elements. If value is not nil, room that is newly taken holds it. Contents and size
// stay. Elements that are not in memory of the buffer's own are copied to such memory first, if there is too little.
func (a *Array) Reserve(n int, value *Array) error {
	if err := a.checkChangeable(); err != nil {
		return err
	}
	filling, err := a.patternOf(value)
	if err != nil {
		return err
	}
	if err := a.checkCount(n); err != nil {
		return err
	}
	if n <= a.layout.Count() || (n <= a.room && a.ownsRoom()) {
		return nil
	}
	layout, err := a.layout.WithType(a.layout.Type)
	if err != nil {
		return err
	}
	return a.grow(layout, n, a.layout.Count(), filling)
}

// Resize makes the buffer hold n elements in one dimension. Elements in front are kept in C order; new ones hold value,
// or are not initialised if value is nil.
func (a *Array) Resize(n int, value *Array) error { return a.ResizeShape([]int{n}, value) }

// ResizeShape is Resize to a shape of any number of dimensions.
func (a *Array) ResizeShape(shape []int, value *Array) error {
	if err := a.checkChangeable(); err != nil {
		return err
	}
	filling, err := a.patternOf(value)
	if err != nil {
		return err
	}
	return a.resize(shape, filling)
}

// resize is ResizeShape of an array that was checked.
func (a *Array) resize(shape []int, filling *pattern) error {
	layout, err := arrayiface.NewLayout(a.layout.Type, shape, nil)
	if err != nil {
		return err
	}
	old, n := a.layout.Count(), layout.Count()
	if slices.Equal(layout.Shape, a.layout.Shape) {
		return nil
	}
	if n > a.room || !a.layout.ContiguousC() || (n > old && !a.ownsRoom()) {
		return a.grow(layout, n, min(old, n), filling)
	}
	if n > old && filling != nil {
		if err := a.runtime.fillElements(a.elements(old, n), filling.bytes(), a.options.Transfer); err != nil {
			return err
		}
	}
	if n < old && !a.has() {
		// The others have the elements behind: this array no longer grows there.
		a.room, a.grows = n, false
	}
	a.become(layout)
	return nil
}

// ownsRoom reports whether the elements behind the last one are this buffer's to write.
func (a *Array) ownsRoom() bool {
	return a.memory != nil && a.memory.owned && !a.fixed && a.layout.ContiguousC()
}

func (a *Array) checkCount(n int) error {
	if n < 0 {
		return valueError("n", n, "a count of zero or more")
	}
	if n > math.MaxInt64/2/max(a.layout.ItemSize(), 1) {
		return valueError("n", n, "a count whose bytes fit in 62 bits")
	}
	return nil
}

// grow makes room for n elements, of which the first keep stay and the rest hold the pattern if there is one, where
// they are or in new memory. The layout becomes a C-ordered one of at most n elements.
func (a *Array) grow(layout arrayiface.Layout, n, keep int, filling *pattern) error {
	if there, err := a.extend(n, n); err != nil {
		return err
	} else if there {
		if filling != nil {
			if err := a.runtime.fillElements(a.elements(keep, a.room), filling.bytes(), a.options.Transfer); err != nil {
				return err
			}
		}
		a.become(layout)
		return nil
	}
	next, holds, err := a.elsewhere(n)
	if err != nil {
		return err
	}
	if err := a.moveInto(next, keep, filling, holds); err != nil {
		next.Close()
		return err
	}
	next.layout = layout
	return a.replace(next)
}

// moveInto gives next the first keep elements, unless it holds them, and the pattern behind.
func (a *Array) moveInto(next *Array, keep int, filling *pattern, holds bool) error {
	if filling != nil {
		if err := a.runtime.fillElements(next.elements(keep, next.room), filling.bytes(), a.options.Transfer); err != nil {
			return err
		}
	}
	if keep == 0 || holds {
		return nil
	}
	from, err := a.flat()
	if err != nil {
		return err
	}
	defer from.Close()
	return a.runtime.copyElements(next.elements(0, keep), from.elements(0, keep), a.options.Transfer)
}

// flat returns the elements in C order in one dimension, for no longer than a is open: a
// view where they lie so already, else a copy by the same allocator.
func (a *Array) flat() (*Array, error) {
	var v Array
	if a.layout.ContiguousC() {
		v = *a
		v.lent = true
		if v.memory != nil {
			v.memory.Retain()
		}
	} else {
		next, err := a.copyTo(a.runtime, a.options, a.layout.Type)
		if err != nil {
			return nil, err
		}
		v = *next
	}
	v.layout = v.elements(0, v.layout.Count()).layout
	return &v, nil
}

// elements is the run [start, stop) of a contiguous buffer, which may lie beyond its size but not beyond its room.
func (a *Array) elements(start, stop int) piece {
	size := a.layout.ItemSize()
	return a.piece(offset(a.address, start*size), arrayiface.Layout{
		Type: a.layout.Type, Shape: []int{stop - start}, Strides: []int{size}})
}

// Append adds the elements of b, in C order and converted, behind the last one. The capacity doubles, from 8 on; of
// memory that grows where it is, it becomes an eighth more, at least. b may be the buffer itself or a view of it.
func (a *Array) Append(b *Array) error {
	if err := a.checkChangeable(); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	size, more := a.layout.Count(), b.layout.Count()
	if more == 0 {
		return nil
	}
	if size > math.MaxInt-more {
		return valueError("size", fmt.Sprintf("%d + %d", size, more), "a sum that fits in 63 bits")
	}
	// The view keeps b's elements alive while a moves to new memory.
	from, err := b.flat()
	if err != nil {
		return err
	}
	defer from.Close()
	need := size + more
	if err := a.checkCount(need); err != nil {
		return err
	}
	layout := a.elements(0, need).layout
	there := need <= a.room && a.ownsRoom()
	if !there {
		if there, err = a.extend(need, a.roomFor(need)); err != nil {
			return err
		}
	}
	if there {
		if err := a.runtime.copyElements(a.elements(size, need), from.all(), a.options.Transfer); err != nil {
			return err
		}
		a.become(layout)
		return nil
	}
	next, holds, err := a.elsewhere(a.roomFor(need))
	if err != nil {
		return err
	}
	if err = a.moveInto(next, size, nil, holds); err == nil {
		err = a.runtime.copyElements(next.elements(size, need), from.all(), a.options.Transfer)
	}
	if err != nil {
		next.Close()
		return err
	}
	next.layout = layout
	return a.replace(next)
}

// roomFor doubles the capacity until it is enough; that of memory that grows where it is
// becomes an eighth more, at least.
func (a *Array) roomFor(need int) int {
	if a.Grows() {
		return a.roomInPlace(need)
	}
	room := max(a.room, leastCapacity)
	for room < need {
		if a.checkCount(2*room) != nil {
			return need
		}
		room *= 2
	}
	return room
}

// Growing says of an array that View made whether it is the one that grows where it is, if its
// memory Grows, and whether nobody else has the memory at all, but for whom it is lent by.
func (a *Array) Growing(is, sole bool) *Array {
	if a.live() {
		a.grows, a.sole = is && a.memory.Grows(), sole
	}
	return a
}

// Grows reports whether more elements come into being where the array is, as long as the addresses behind it are free.
func (a *Array) Grows() bool { return a.live() && a.grows && a.memory.Grows() }

// roomInPlace is how many elements to have room for where at least need are to be.
func (a *Array) roomInPlace(need int) int {
	if room := a.room + a.room/growthShare; room > need && a.checkCount(room) == nil {
		return room
	}
	return need
}

// extend makes room for n elements or, as far as there is memory, for wanted, where the
// elements are, and reports whether it has.
func (a *Array) extend(n, wanted int) (bool, error) {
	size := a.layout.ItemSize()
	if !a.growsInPlace() || size == 0 {
		return false, nil
	}
	err := a.memory.extend(n*size, wanted*size)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a.room = a.memory.Size() / size
	return true, nil
}

func (a *Array) growsInPlace() bool {
	return a.Grows() && a.ownsRoom() && a.address == a.memory.region.Address
}

// elsewhere returns an array with room for n elements, which are to be a's. holds is whether
// they are already, as the memory is the same at other addresses. That it cannot be while
// somebody else has it, who would find one element at two addresses.
func (a *Array) elsewhere(n int) (next *Array, holds bool, err error) {
	if size := a.layout.ItemSize(); size > 0 && a.growsInPlace() && a.has() {
		m, err := a.memory.relocated(n * size)
		if err == nil {
			return &Array{runtime: a.runtime, options: a.options, memory: m, address: m.region.Address,
				layout: a.layout, room: m.Size() / size, grows: true}, true, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, false, err
		}
	}
	o := a.options
	if a.memory != nil {
		o.Tag = a.memory.tag
	}
	next, err = a.runtime.NewArray(a.layout.Type, []int{n}, o)
	return next, false, err
}

// has reports whether nobody has the memory but a, and whom it is lent by.
func (a *Array) has() bool {
	if a.memory == nil {
		return true
	}
	references := a.memory.refs.Load()
	//mutate:replace memory moves while somebody else has it
	//mutate:with references == 1 || (references == 2 && a.lent && a.sole) => references > 0
	return references == 1 || (references == 2 && a.lent && a.sole)
}
