package bridge

import (
	"hamr/backends"
	"hamr/gobuffer"
)

// CopyBlocks sets the blocks of each destination that an index names from those of the source at the same place in the
// list. A transfer below zero is each destination's own.
func CopyBlocks(destinations []*Descriptor, destinationIndex *Descriptor, sources []*Descriptor,
	sourceIndex *Descriptor, transfer int32) (err error) {
	defer Guard(&err)
	copyThem := func(stop *backends.Stop) error {
		return copyBlocks(stop, destinations, destinationIndex, sources, sourceIndex, transfer)
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

func copyBlocks(stop *backends.Stop, destinations []*Descriptor, destinationIndex *Descriptor, sources []*Descriptor,
	sourceIndex *Descriptor, transfer int32) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	var open borrowed
	defer open.close()
	to, err := open.all(stop, destinations)
	if err != nil {
		return err
	}
	from, err := open.all(stop, sources)
	if err != nil {
		return err
	}
	indices, err := open.all(stop, []*Descriptor{destinationIndex, sourceIndex})
	if err != nil {
		return err
	}
	if transfer >= 0 {
		for _, a := range to {
			a.SetTransfer(gobuffer.Transfer(transfer))
		}
	}
	return gobuffer.CopyBlocks(to, indices[0], from, indices[1])
}

// borrowed is the arrays of a call.
type borrowed []*gobuffer.Array

// all adds those of a list.
func (b *borrowed) all(stop *backends.Stop, list []*Descriptor) ([]*gobuffer.Array, error) {
	first := len(*b)
	for _, d := range list {
		a, err := d.borrowed()
		if err != nil {
			return nil, err
		}
		*b = append(*b, a.Until(stop))
	}
	return (*b)[first:], nil
}

func (b *borrowed) close() {
	for _, a := range *b {
		a.Close()
	}
}
