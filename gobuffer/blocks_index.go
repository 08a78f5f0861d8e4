package gobuffer

import (
	"fmt"
	"math"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/elements"
)

// blockIndex is an argument that says which blocks are copied.
type blockIndex struct {
	name     string
	list     []int64 // nil while they are only where they are
	count    int
	unsigned bool // list has 64 bits without a sign
	where    piece
	runtime  *Runtime
}

// blockIndices checks both, and reads what the host reaches.
func blockIndices(destination, source *Array) (to, from *blockIndex, err error) {
	if to, err = newBlockIndex("destination_index", destination); err != nil {
		return nil, nil, err
	}
	if from, err = newBlockIndex("source_index", source); err != nil {
		return nil, nil, err
	}
	if to.count != from.count {
		return nil, nil, valueError("source_index", fmt.Sprintf("%d indices", from.count),
			fmt.Sprintf("one for each of %d of destination_index", to.count))
	}
	return to, from, nil
}

func newBlockIndex(name string, a *Array) (*blockIndex, error) {
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	kind := a.layout.Type.Kind()
	if kind != arrayiface.KindSigned && kind != arrayiface.KindUnsigned {
		return nil, typeError(name, fmt.Sprintf("of type %s", a.layout.Type), "integers")
	}
	if len(a.layout.Shape) != 1 {
		return nil, valueError(name, fmt.Sprintf("of shape %v", a.layout.Shape), "one dimension")
	}
	x := &blockIndex{name: name, count: a.layout.Count(), where: a.all(), runtime: a.runtime,
		unsigned: a.layout.Type == arrayiface.Uint64}
	if x.count > 0 && !x.where.onHost() && !x.where.maps() {
		return x, nil
	}
	return x, x.read()
}

// read brings the indices to the host. They are copies: others may change the array while they are used.
func (x *blockIndex) read() error {
	if x.list != nil {
		return nil
	}
	x.list = make([]int64, x.count)
	if x.count == 0 {
		return nil
	}
	//mutate:replace indices are read before what is pending on them
	//mutate:with x.runtime.onHost(x.where) => x.where, func() {}, error(nil)
	host, free, err := x.runtime.onHost(x.where)
	if err != nil {
		return err
	}
	defer free()
	plain := arrayiface.Layout{Type: arrayiface.Int64, Shape: []int{x.count}, Strides: []int{8}}
	return elements.CopyStrided(unsafe.Pointer(unsafe.SliceData(x.list)), plain, host.pointer(), host.layout)
}

// within returns the indices of so many blocks, counted from the first. It does not change the list.
func (x *blockIndex) within(extent int) ([]int64, error) {
	list, own := x.list, false
	for k, i := range list {
		if uint64(i) < uint64(extent) {
			continue
		}
		if x.unsigned || i >= 0 || i < -int64(extent) {
			return nil, x.outOfRange(k, i, extent)
		}
		if !own {
			list, own = append([]int64(nil), list...), true
		}
		list[k] = i + int64(extent)
	}
	return list, nil
}

func (x *blockIndex) outOfRange(k int, value int64, extent int) error {
	return badBlockIndex(x.name, k, value, x.unsigned, extent)
}

func badBlockIndex(name string, k int, value int64, unsigned bool, extent int) error {
	text, accepted := fmt.Sprint(value), fmt.Sprintf("%d … %d", -extent, extent-1)
	if unsigned {
		text = fmt.Sprint(uint64(value))
	}
	if extent == 0 {
		accepted = "none, of an array of no blocks"
	}
	return indexError(fmt.Sprintf("%s[%d]", name, k), text, accepted)
}

// there is what a device is told of indices, in memory that it reaches or as a list.
func (x *blockIndex) there(extent int) (backends.BlockIndex, error) {
	if x.list == nil {
		return backends.BlockIndex{Region: x.where.region(), Width: x.where.layout.ItemSize(), Extent: extent}, nil
	}
	list, err := x.within(extent)
	return backends.BlockIndex{List: list, Extent: extent}, err
}

// forDevice reports whether a device can take the indices from where they are.
func (x *blockIndex) forDevice() bool {
	t := x.where.layout.Type
	return (t == arrayiface.Int32 || t == arrayiface.Int64) && x.where.layout.ContiguousC() &&
		int(x.where.address)%t.Size() == 0
}

// lastOfEach leaves out what is overwritten: of the places in from with the same place in to, all but the last.
func lastOfEach(to, from []int64, extent int) ([]int64, []int64) {
	named, repeated := newBlockSet(len(to), extent), 0
	for _, i := range to {
		if !named.add(i) {
			repeated++
		}
	}
	//mutate:replace of blocks that are named twice the first wins
	//mutate:with repeated == 0 => repeated >= 0
	if repeated == 0 {
		return to, from
	}
	left := len(to) - repeated
	last, source := make([]int64, left), make([]int64, left)
	named = newBlockSet(len(to), extent)
	for k := len(to) - 1; k >= 0; k-- {
		if named.add(to[k]) {
			left--
			last[left], source[left] = to[k], from[k]
		}
	}
	return last, source
}

// blockSet is numbers of blocks.
type blockSet struct {
	bits   []uint64 // where there are not many more blocks than indices
	others map[int64]struct{}
}

func newBlockSet(count, extent int) blockSet {
	if extent/64 <= count+math.MaxUint8 {
		return blockSet{bits: make([]uint64, extent/64+1)}
	}
	return blockSet{others: make(map[int64]struct{}, count)}
}

func (s blockSet) has(i int64) bool {
	if s.bits != nil {
		return s.bits[i/64]&(1<<(i%64)) != 0
	}
	_, has := s.others[i]
	return has
}

// add reports whether the set had no such number.
func (s blockSet) add(i int64) bool {
	if s.has(i) {
		return false
	}
	if s.bits != nil {
		s.bits[i/64] |= 1 << (i % 64)
	} else {
		s.others[i] = struct{}{}
	}
	return true
}
