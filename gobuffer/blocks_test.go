package gobuffer_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// indices is an array of numbers of blocks, of int32 or int64.
func (w *world) indices(p place, kind arrayiface.ElementType, list []int) *gobuffer.Array {
	m := model{kind, []int{len(list)}, nil}
	for _, i := range list {
		if kind == arrayiface.Int32 {
			m.data = binary.NativeEndian.AppendUint32(m.data, uint32(int32(i)))
		} else {
			m.data = binary.NativeEndian.AppendUint64(m.data, uint64(int64(i)))
		}
	}
	return w.array(p.options(gobuffer.Async), m)
}

// blockWalk is arrays, and what they hold.
type blockWalk struct {
	*world
	random *rand.Rand
	arrays []*gobuffer.Array
	values [][]int // of each element, in C order
}

var blockKinds = []arrayiface.ElementType{arrayiface.Int16, arrayiface.Int32, arrayiface.Int64, arrayiface.Float64}

func newBlockWalk(w *world, random *rand.Rand, somewhere []place) *blockWalk {
	x := &blockWalk{world: w, random: random}
	few := blockKinds[:1+random.IntN(len(blockKinds))]
	for i := range 5 {
		p := somewhere[random.IntN(len(somewhere))]
		kind, blocks := few[random.IntN(len(few))], 4+2*random.IntN(3)
		m, values := model{kind, []int{blocks, 4, 6}, nil}, []int(nil)
		for v := range blocks * 24 {
			values = append(values, (v+7*i)%100)
			m.data = append(m.data, element(kind, values[v])...)
		}
		how := arrangements[0]
		if random.IntN(3) == 0 {
			how = arrangements[random.IntN(len(arrangements))]
		}
		x.arrays = append(x.arrays, w.lay(p, p.options(gobuffer.Transfer(random.IntN(3))), m, how))
		x.values = append(x.values, values)
	}
	return x
}

// part is a view of columns of an array, and which elements these are.
func (x *blockWalk) part(i, first, rows, column, columns int) (*gobuffer.Array, func(block int) []int) {
	a, err := x.arrays[i].Slice(1, first, first+rows, 1)
	require.NoError(x.t, err)
	b, err := a.Slice(2, column, column+columns, 1)
	require.NoError(x.t, err)
	require.NoError(x.t, a.Close())
	return b, func(block int) (list []int) {
		for r := range rows {
			for c := range columns {
				list = append(list, block*24+(first+r)*6+column+c)
			}
		}
		return list
	}
}

func (x *blockWalk) some(n, extent int) (list []int) {
	for range n {
		list = append(list, x.random.IntN(2*extent)-extent)
	}
	return list
}

// step is one call, and what NumPy would do.
func (x *blockWalk) step(somewhere []place) {
	var to, from []*gobuffer.Array
	rows, columns := 1+x.random.IntN(4), 1+x.random.IntN(6)
	if x.random.IntN(2) == 0 {
		rows, columns = 4, 6
	}
	n, wrong := x.random.IntN(12), -1
	var ends [][2]int
	least := [2]int{100, 100}
	for range 1 + x.random.IntN(2) {
		i, j := x.random.IntN(len(x.arrays)), x.random.IntN(len(x.arrays))
		ends = append(ends, [2]int{i, j})
		least[0], least[1] = min(least[0], x.arrays[i].Layout().Shape[0]), min(least[1], x.arrays[j].Layout().Shape[0])
	}
	di, si := x.some(n, least[0]), x.some(n, least[1])
	if n > 0 && x.random.IntN(8) == 0 {
		wrong = x.random.IntN(n)
		di[wrong] = 100
	}
	type write struct{ values, at, of []int }
	var writes []write
	for _, end := range ends {
		d, atTo := x.part(end[0], x.random.IntN(5-rows), rows, x.random.IntN(7-columns), columns)
		s, atFrom := x.part(end[1], x.random.IntN(5-rows), rows, x.random.IntN(7-columns), columns)
		to, from = append(to, d), append(from, s)
		each := write{values: x.values[end[0]]}
		var read []int
		if wrong < 0 {
			for k := range n {
				read = append(read, atFrom((si[k]+s.Layout().Shape[0])%s.Layout().Shape[0])...)
				each.at = append(each.at, atTo((di[k]+d.Layout().Shape[0])%d.Layout().Shape[0])...)
			}
		}
		each.of = read
		writes = append(writes, each)
	}
	kinds := []arrayiface.ElementType{arrayiface.Int32, arrayiface.Int64}
	p, q := somewhere[x.random.IntN(len(somewhere))], somewhere[x.random.IntN(len(somewhere))]
	for _, end := range []*gobuffer.Array{to[0], from[0]} {
		if end.Allocator().Kind() == backends.DeviceOnly && x.random.IntN(2) == 0 {
			p = place{end.Allocator(), end.Owner()}
			q = p
		}
	}
	a, b := x.indices(p, kinds[x.random.IntN(2)], di), x.indices(q, kinds[x.random.IntN(2)], si)
	err := gobuffer.CopyBlocks(to, a, from, b)
	if wrong >= 0 {
		if err == nil {
			err = x.waits(to)
		}
		var bad *gobuffer.ArgumentError
		require.ErrorAs(x.t, err, &bad)
		assert.Equal(x.t, fmt.Sprintf("destination_index[%d] is 100", wrong), bad.Argument+" is "+bad.Value)
	} else {
		require.NoError(x.t, err)
		for i, each := range writes {
			var read []int
			for _, e := range each.of {
				read = append(read, x.values[ends[i][1]][e])
			}
			for k, at := range each.at {
				each.values[at] = read[k]
			}
		}
		for _, d := range to {
			if d.Allocator().Kind() == backends.Pageable {
				_, busy := d.Memory().Busy()
				assert.False(x.t, busy, "who asks nobody")
			}
		}
	}
	closeAll(x.t, slices.Concat(to, from, []*gobuffer.Array{a, b})...)
}

// waits returns what the first wait for one of the arrays says that says anything.
func (x *blockWalk) waits(list []*gobuffer.Array) error {
	for _, a := range list {
		if err := a.Synchronize(); err != nil {
			return err
		}
	}
	return nil
}

func (x *blockWalk) check() {
	for i, a := range x.arrays {
		var want []byte
		for _, v := range x.values[i] {
			want = append(want, element(a.Type(), v)...)
		}
		x.assertHolds(a, model{a.Type(), a.Layout().Shape, want}, "array %d of %s", i, a.Allocator())
	}
}

// TestBlocksAreCopiedAsPlainValues walks at random over layouts, types, places, and indices that are repeated, below
// zero or out of range, by each way.
func TestBlocksAreCopiedAsPlainValues(t *testing.T) {
	ways := []string{"on the host", "by the device", "by the device, which has the indices",
		"by way of page-locked memory", "one by one"}
	taken := map[string]int{}
	defer func() {
		for _, way := range ways {
			assert.Greater(t, taken[way], 50, way)
		}
		t.Log(taken)
	}()
	for _, o := range []backendtest.FakeOptions{late, {Manual: true, Strict: true, NoBlocks: true},
		{Manual: true, Strict: true, NoConvert: true}, {Manual: true, Mapped: true}, {Manual: true, Platforms: 2},
		{Synchronous: true, OneThread: true}} {
		for seed := range uint64(150) {
			random := rand.New(rand.NewPCG(seed, 39))
			w := newWorld(t, 2, o)
			w.runtime.SetTrace(func(line string) {
				for _, way := range ways {
					if strings.HasSuffix(line, way) {
						taken[way]++
					}
				}
			})
			somewhere := places(2)
			if random.IntN(2) == 0 {
				random.Shuffle(len(somewhere), func(i, j int) { somewhere[i], somewhere[j] = somewhere[j], somewhere[i] })
				somewhere = somewhere[:1+random.IntN(3)]
			}
			x := newBlockWalk(w, random, somewhere)
			for range 6 {
				x.step(somewhere)
			}
			x.check()
			require.False(t, t.Failed(), "seed %d, %+v", seed, o)
			for _, a := range x.arrays {
				assert.Zero(t, w.strays(a), "seed %d", seed)
			}
			closeAll(t, x.arrays...)
			gobuffer.SweepBlocks(w.runtime)
		}
	}
}
