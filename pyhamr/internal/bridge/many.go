package bridge

import (
	"slices"
	"sync"

	"hamr/backends"
	"hamr/gobuffer"
)

// CopyMany sets the elements of each array from those of the one at the same place in the list, broadcast. With
// indices, it sets the blocks that one names from those that the other names. A transfer below zero is each array's
// own.
func CopyMany(
	destinations, sources []*Descriptor, destinationIndex, sourceIndex *Descriptor, transfer int32,
) (err error) {
	defer Guard(&err)
	copyThem := func(stop *backends.Stop) error {
		return copyMany(stop, destinations, sources, destinationIndex, sourceIndex, transfer)
	}
	slices, err := longMany(destinations, sources, transfer)
	switch {
	case err != nil:
		return err
	case slices:
		return inSlices(copyThem)
	}
	return copyThem(nil)
}

// longMany reports whether the copies may take long together: movement.long of all of them.
func longMany(destinations, sources []*Descriptor, transfer int32) (bool, error) {
	if len(destinations) != len(sources) || len(destinations) == 0 || !destinations[0].prompt() {
		return false, nil
	}
	var up, down movement
	for i, d := range destinations {
		m := movement{to: backends.Allocator(d.Allocator), from: backends.Allocator(sources[i].Allocator)}
		switch toHost := m.to.Kind() == backends.Pageable; {
		case toHost && m.from.Kind() != backends.Pageable:
			m.bytes += down.bytes + d.bytes()
			down = m
		case !toHost && m.from.Kind() == backends.Pageable:
			m.bytes, m.waits = up.bytes+d.bytes(), up.waits
			up = m
		}
		up.waits = up.waits || gobuffer.Transfer(transfer) == gobuffer.Sync || transfer < 0 && d.waits()
	}
	all := slices.Concat(destinations, sources)
	if down.bytes > 0 {
		if is, err := down.long(all...); is || err != nil {
			return is, err
		}
	}
	if up.bytes == 0 && !up.waits {
		return false, nil
	}
	return up.long(all...)
}

func copyMany(
	stop *backends.Stop, destinations, sources []*Descriptor, destinationIndex, sourceIndex *Descriptor, transfer int32,
) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	l := listOf(2*len(destinations) + 2)
	defer l.close()
	for i, list := range [][]*Descriptor{destinations, sources} {
		for _, d := range list {
			a, err := l.borrow(d, stop)
			if err != nil {
				return err
			}
			if i == 0 && transfer >= 0 {
				a.SetTransfer(gobuffer.Transfer(transfer))
			}
		}
	}
	to, from := l.arrays[:len(destinations)], l.arrays[len(destinations):]
	if destinationIndex == nil || sourceIndex == nil {
		return gobuffer.CopyMany(to, from)
	}
	var indices [2]*gobuffer.Array
	for i, d := range []*Descriptor{destinationIndex, sourceIndex} {
		if indices[i], err = l.borrow(d, stop); err != nil {
			return err
		}
	}
	return gobuffer.CopyBlocks(to, indices[0], from, indices[1])
}

// arrayLists has the lists of calls that are over: those of thousands of arrays have megabytes.
var arrayLists = sync.Pool{New: func() any { return new(arrayList) }}

// arrayList is the arrays of a call.
type arrayList struct {
	rooms  []gobuffer.Array
	arrays []*gobuffer.Array // those of the rooms that are in use
	of     []*Descriptor
}

// listOf returns a list for n arrays. The caller closes it.
func listOf(n int) *arrayList {
	l := arrayLists.Get().(*arrayList)
	if n > len(l.rooms) {
		l.rooms, l.arrays = make([]gobuffer.Array, n), make([]*gobuffer.Array, 0, n)
	}
	return l
}

func (l *arrayList) borrow(d *Descriptor, stop *backends.Stop) (*gobuffer.Array, error) {
	a := &l.rooms[len(l.arrays)]
	if err := d.borrow(a); err != nil {
		return nil, err
	}
	l.arrays, l.of = append(l.arrays, a), append(l.of, d)
	return a.Until(stop), nil
}

// close ends the arrays. Memory that has no token is free of work then. Where a device could not be waited for, its
// descriptor has marks.
func (l *arrayList) close() {
	for i, a := range l.arrays {
		m := a.Memory()
		a.Close()
		if d := l.of[i]; d.Memory == 0 {
			if _, busy := m.Busy(); busy {
				d.Marks = 1
			}
		}
		*a = gobuffer.Array{}
	}
	clear(l.of) // nothing names the caller's memory any more
	l.arrays, l.of = l.arrays[:0], l.of[:0]
	arrayLists.Put(l)
}
