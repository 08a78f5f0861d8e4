package bridge

import (
	"slices"

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
	arrays := make([]*gobuffer.Array, 0, 2*len(destinations))
	defer func() {
		for _, a := range arrays {
			a.Close()
		}
	}()
	for i, list := range [][]*Descriptor{destinations, sources} {
		for _, d := range list {
			a, err := d.borrowed()
			if err != nil {
				return err
			}
			if i == 0 && transfer >= 0 {
				a.SetTransfer(gobuffer.Transfer(transfer))
			}
			arrays = append(arrays, a.Until(stop))
		}
	}
	to, from := arrays[:len(destinations)], arrays[len(destinations):]
	if destinationIndex == nil || sourceIndex == nil {
		return gobuffer.CopyMany(to, from)
	}
	var indices [2]*gobuffer.Array
	for i, d := range []*Descriptor{destinationIndex, sourceIndex} {
		a, err := d.borrowed()
		if err != nil {
			return err
		}
		defer a.Close()
		indices[i] = a.Until(stop)
	}
	return gobuffer.CopyBlocks(to, indices[0], from, indices[1])
}
