package bridge

import "hamr/gobuffer"

// CopyMany sets the elements of each array from those of the one at the same place in the list,
// broadcast. A transfer below zero is each array's own.
func CopyMany(destinations, sources []*Descriptor, transfer int32) (err error) {
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
			arrays = append(arrays, a)
		}
	}
	return gobuffer.CopyMany(arrays[:len(destinations)], arrays[len(destinations):])
}
