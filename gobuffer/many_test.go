package gobuffer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// fields makes arrays at a place, of which the i-th holds i+first throughout.
func (w *world) fields(p place, t gobuffer.Transfer, n, first int) (list []*gobuffer.Array) {
	for i := range n {
		m := model{arrayiface.Int32, []int{4}, bytes.Repeat(element(arrayiface.Int32, i+first), 4)}
		list = append(list, w.array(p.options(t), m))
	}
	return list
}

func TestManyCopiesAreOneBatch(t *testing.T) {
	device, other := place{backends.CUDA, 0}, place{backends.CUDAAsync, 0}
	for _, way := range [][2]place{{device, {backends.Malloc, -1}}, {{backends.Malloc, -1}, device}, {device, other},
		{device, {backends.CUDAHost, -1}}} {
		w := newWorld(t, 1, late)
		to, from := w.fields(way[0], gobuffer.SyncHost, 20, 0), w.fields(way[1], gobuffer.SyncHost, 20, 50)
		waits := w.cuda.CallCount("Synchronize")
		require.NoError(t, gobuffer.CopyMany(to, from))
		assert.Equal(t, 1, w.cuda.CallCount("CopyBatch"), "%v", way)
		assert.LessOrEqual(t, w.cuda.CallCount("Synchronize")-waits, 1, "%v", way)
		for i := range to {
			w.assertHolds(to[i], w.read(from[i]), "%v", way)
		}
		closeAll(t, to...)
		closeAll(t, from...)
	}
}

// TestStridesOfOneIndexSayNothing: NumPy's arrays have any there.
func TestStridesOfOneIndexSayNothing(t *testing.T) {
	w := newWorld(t, 1, late)
	to, from := w.fields(place{backends.CUDA, 0}, gobuffer.Sync, 4, 0),
		w.fields(place{backends.Malloc, -1}, gobuffer.Sync, 4, 50)
	for i, list := range [][]*gobuffer.Array{to, from} {
		for j, a := range list {
			layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{1, 4}, []int{i * 1000, 4})
			require.NoError(t, err)
			list[j] = gobuffer.View(a.Memory().Retain(), a.Address(), layout, 4, false, a.Options())
			closeAll(t, a)
		}
	}
	require.NoError(t, gobuffer.CopyMany(to, from))
	assert.Equal(t, 1, w.cuda.CallCount("CopyBatch"))
	assert.Zero(t, w.cuda.CallCount("Convert"))
	for i := range to {
		assert.Equal(t, w.peek(from[i].Memory()), w.peek(to[i].Memory()))
	}
	closeAll(t, append(to, from...)...)
}

// TestManyCopiesOfEachKind go to several lots, and some to none.
func TestManyCopiesOfEachKind(t *testing.T) {
	for _, o := range []backendtest.FakeOptions{late, {Manual: true, Strict: true, NoConvert: true},
		{Manual: true, Mapped: true}} {
		for seed := range uint64(60) {
			random := rand.New(rand.NewPCG(seed, 5))
			w := newWorld(t, 2, o)
			somewhere := places(2)
			var to, from []*gobuffer.Array
			var want []model
			for range 12 {
				p, q := somewhere[random.IntN(len(somewhere))], somewhere[random.IntN(len(somewhere))]
				kind := []arrayiface.ElementType{arrayiface.Int32, arrayiface.Int64, arrayiface.Float64}[random.IntN(3)]
				source := counting(arrayiface.Int32, 3, 4)
				target := w.array(p.options(gobuffer.Transfer(random.IntN(3))),
					model{kind, []int{3, 4}, bytes.Repeat(element(kind, 99), 12)})
				to, from = append(to, target), append(from, w.array(q.options(gobuffer.Async), source))
				want = append(want, counting(kind, 3, 4))
			}
			require.NoError(t, gobuffer.CopyMany(to, from), "seed %d", seed)
			for i := range to {
				if to[i].Allocator().Kind() == backends.Pageable {
					require.Equal(t, want[i].data, w.peek(to[i].Memory()), "who asks nobody, seed %d", seed)
				}
				w.assertHolds(to[i], want[i], "seed %d", seed)
			}
			closeAll(t, to...)
			closeAll(t, from...)
		}
	}
}

// TestManyCopiesComeInOrder compares lists whose pairs have bytes of each other with a loop of Write.
func TestManyCopiesComeInOrder(t *testing.T) {
	homes := []place{{backends.CUDA, 0}, {backends.Malloc, -1}, {backends.CUDAHost, -1}, {backends.CUDA, 1}}
	for seed := range uint64(400) {
		var results [2][]model
		for loop := range 2 {
			random := rand.New(rand.NewPCG(seed, 6))
			w := newWorld(t, 2, late)
			var arrays []*gobuffer.Array
			for _, p := range homes {
				arrays = append(arrays, w.array(p.options(gobuffer.Transfer(random.IntN(3))), counting(arrayiface.Int32, 30)))
			}
			var to, from []*gobuffer.Array
			for range 2 + random.IntN(8) {
				a, b := arrays[random.IntN(len(arrays))], arrays[random.IntN(len(arrays))]
				n, i, j := 1+random.IntN(6), random.IntN(24), random.IntN(24)
				d, err := a.Slice(0, i, i+n, 1)
				require.NoError(t, err)
				s, err := b.Slice(0, j, j+n, 1)
				require.NoError(t, err)
				to, from = append(to, d), append(from, s)
			}
			if loop == 0 {
				require.NoError(t, gobuffer.CopyMany(to, from))
			} else {
				for i := range to {
					require.NoError(t, to[i].Write(from[i]))
				}
			}
			for _, a := range arrays {
				results[loop] = append(results[loop], w.read(a))
			}
			closeAll(t, append(append(to, from...), arrays...)...)
		}
		require.Equal(t, results[1], results[0], "seed %d", seed)
	}
}

func TestManyCopiesWaitAsTheirModesSay(t *testing.T) {
	host, device, pinned := place{backends.Malloc, -1}, place{backends.CUDA, 0}, place{backends.CUDAHost, -1}
	for _, c := range []struct {
		from, to place
		over     [3]bool // when the call returns, by mode
	}{
		{device, host, [3]bool{true, true, true}},
		{device, pinned, [3]bool{false, true, true}},
		{host, device, [3]bool{false, false, true}},
		{device, place{backends.CUDAAsync, 0}, [3]bool{false, false, true}},
	} {
		for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync} {
			w := newWorld(t, 1, late)
			to, from := w.fields(c.to, mode, 3, 0), w.fields(c.from, gobuffer.Async, 3, 9)
			require.NoError(t, gobuffer.CopyMany(to, from))
			for i := range to {
				assert.Equal(t, c.over[mode], bytes.Equal(w.peek(from[i].Memory()), w.peek(to[i].Memory())), "%s to %s, %s", c.from,
					c.to, mode)
				if c.over[mode] {
					for _, a := range []*gobuffer.Array{to[i], from[i]} {
						_, busy := a.Memory().Busy()
						assert.False(t, busy, "it is not waited for again")
					}
				}
			}
			closeAll(t, to...)
			closeAll(t, from...)
		}
	}
}

// again is a's elements by another Memory, as who does not know a's shares them.
func (w *world) again(a *gobuffer.Array, as backends.Allocator, s backends.Stream) *gobuffer.Array {
	w.t.Helper()
	at, o := a.Memory().Region(), a.Options()
	at.Allocator, o.Allocator, o.Stream = as, as, s
	m, err := w.runtime.Adopt(at, a.Memory().Size(), s, func() {})
	require.NoError(w.t, err)
	return gobuffer.View(m, a.Address(), a.Layout(), a.Size(), false, o)
}

// TestManyCopiesOfBytesThatTwoMemoriesHave: what waits for the one does not wait for the other.
func TestManyCopiesOfBytesThatTwoMemoriesHave(t *testing.T) {
	w := newWorld(t, 1, late)
	host := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
	same := w.again(host, backends.Malloc, 0)
	device, target := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), after),
		w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
	require.NoError(t, gobuffer.CopyMany([]*gobuffer.Array{host, target}, []*gobuffer.Array{device, same}))
	assert.Equal(t, after.data, w.peek(target.Memory()))
	closeAll(t, host, same, device, target)
}

// TestManyCopiesOfADevicesBytesThatTwoMemoriesHave: what runs after the one does not run after the other.
func TestManyCopiesOfADevicesBytesThatTwoMemoriesHave(t *testing.T) {
	w := newWorld(t, 1, late)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	source, target, other := w.array(o, before), w.array(o, before), w.array(o, after)
	another := w.stream(w.cuda, 0)
	same := w.again(source, backends.CUDA, another)
	w.busy(0, o.Stream)
	require.NoError(t, gobuffer.CopyMany([]*gobuffer.Array{target, same}, []*gobuffer.Array{source, other}))
	require.NoError(t, same.Synchronize())
	assert.Equal(t, before.data, w.peek(target.Memory()))
	assert.Equal(t, after.data, w.peek(source.Memory()))
	closeAll(t, source, target, other, same)
	require.NoError(t, w.cuda.DestroyStream(0, o.Stream))
	require.NoError(t, w.cuda.DestroyStream(0, another))
}

// TestManyCopiesOfPageLockedBytesThatTwoMemoriesHave, one of which knows them as ordinary ones.
func TestManyCopiesOfPageLockedBytesThatTwoMemoriesHave(t *testing.T) {
	w := newWorld(t, 1, late)
	pinned := w.array(place{backends.CUDAHost, -1}.options(gobuffer.Async), before)
	same := w.again(pinned, backends.Malloc, 0)
	device := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), after)
	target := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
	require.NoError(t, gobuffer.CopyMany([]*gobuffer.Array{pinned, target}, []*gobuffer.Array{device, same}))
	assert.Equal(t, after.data, w.peek(target.Memory()))
	closeAll(t, pinned, same, device, target)
}

// TestManyCopiesWaitForEachStream has pairs whose work is on streams of their own.
func TestManyCopiesWaitForEachStream(t *testing.T) {
	w := newWorld(t, 2, late)
	var to, from []*gobuffer.Array
	var streams []backends.Stream
	for i := range 6 {
		s := w.stream(w.cuda, i%2)
		o := place{backends.CUDA, i % 2}.options(gobuffer.Async)
		o.Stream = s
		from = append(from, w.array(o, after))
		to = append(to, w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), before))
		streams = append(streams, s)
	}
	require.NoError(t, gobuffer.CopyMany(to, from))
	for _, a := range to {
		assert.Equal(t, after.data, w.peek(a.Memory()))
	}
	closeAll(t, to...)
	closeAll(t, from...)
	for i, s := range streams {
		require.NoError(t, w.cuda.DestroyStream(i%2, s))
	}
}

// TestNothingIsCopiedWhereAPairIsWrong names the place in the list.
func TestNothingIsCopiedWhereAPairIsWrong(t *testing.T) {
	w := newWorld(t, 1, late)
	fixed := w.array(place{backends.CUDA, 0}.options(gobuffer.Sync), before)
	fixed = gobuffer.View(fixed.Memory(), fixed.Address(), fixed.Layout(), 0, true, fixed.Options())
	closed := w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), before)
	closeAll(t, closed)
	good := w.fields(place{backends.CUDA, 0}, gobuffer.Sync, 2, 0)
	source := w.fields(place{backends.Malloc, -1}, gobuffer.Sync, 2, 7)
	long := w.array(place{backends.Malloc, -1}.options(gobuffer.Sync), counting(arrayiface.Int32, 5))
	lent, err := good[1].AccessMode(backends.SpaceHost, -1, gobuffer.Write)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		to, from []*gobuffer.Array
		message  string
		is       error
	}{
		"lengths":   {good, source[:1], "sources is 1 arrays: accepted is one for each of 2 destinations", nil},
		"read-only": {[]*gobuffer.Array{good[0], fixed}, source, "destinations[1], sources[1]: buffer is read-only", nil},
		"closed":    {[]*gobuffer.Array{good[0], closed}, source, "destinations[1], sources[1]", gobuffer.ErrFreed},
		"nil":       {[]*gobuffer.Array{good[0], nil}, source, "destinations[1], sources[1]", gobuffer.ErrZero},
		"nothing":   {good[:1], []*gobuffer.Array{nil}, "destinations[0], sources[0]", gobuffer.ErrZero},
		"shape": {[]*gobuffer.Array{good[0], source[0]}, []*gobuffer.Array{source[1], long},
			"destinations[1], sources[1]: shape", nil},
		"in use": {good, source, "destinations[1], sources[1]", gobuffer.ErrInUse},
	} {
		err := gobuffer.CopyMany(c.to, c.from)
		require.ErrorContains(t, err, c.message, name)
		if c.is != nil {
			assert.ErrorIs(t, err, c.is, name)
		}
		w.assertHolds(good[0], model{arrayiface.Int32, []int{4}, make([]byte, 16)}, name)
	}
	require.NoError(t, lent.Release())
	require.NoError(t, gobuffer.CopyMany(nil, nil))
	closeAll(t, append(append(good, source...), fixed, long)...)
}

// TestManyCopiesAfterAnError leave ordinary host memory alone from the return on, whichever of them
// fails, and the next are right.
func TestManyCopiesAfterAnError(t *testing.T) {
	for _, way := range [][2]place{{{backends.Malloc, -1}, {backends.CUDA, 0}},
		{{backends.CUDA, 0}, {backends.Malloc, -1}}} {
		for _, kind := range []string{"CopyBatch", "Copy", "Synchronize", "Record", "Wait", "Resolve", "NewEvent"} {
			for nth := 1; nth <= 4; nth++ {
				t.Run(fmt.Sprintf("%s to %s, %s %d", way[1], way[0], kind, nth), func(t *testing.T) {
					w := newWorld(t, 1, late)
					to, from := w.fields(way[0], gobuffer.Sync, 3, 0), w.fields(way[1], gobuffer.Sync, 3, 9)
					own := w.stream(w.cuda, 0)
					for _, a := range append(to, from...) {
						if a.Allocator() == backends.CUDA {
							require.NoError(t, a.SetStream(own, gobuffer.Sync))
						}
					}
					w.cuda.FailAt(kind, nth, errInjected)
					err := gobuffer.CopyMany(to, from)
					w.cuda.StopFailing()
					if err != nil {
						require.ErrorIs(t, err, errInjected)
					}
					var at [][]byte
					for _, a := range to {
						at = append(at, w.peek(a.Memory()))
					}
					require.NoError(t, w.cuda.Synchronize(0, own))
					require.NoError(t, w.cuda.Synchronize(0, 0))
					for i, a := range to {
						if a.Allocator() == backends.Malloc && kind != "Synchronize" {
							assert.Equal(t, at[i], w.peek(a.Memory()), "written after the return")
						}
					}
					require.NoError(t, gobuffer.CopyMany(to, from))
					for i := range to {
						w.assertHolds(to[i], w.read(from[i]))
					}
					closeAll(t, to...)
					closeAll(t, from...)
					require.NoError(t, w.cuda.DestroyStream(0, own))
				})
			}
		}
	}
}

// plainBackend is a device without batches.
type plainBackend struct {
	backends.Backend
	backends.Streams
}

func TestManyCopiesWithoutBatches(t *testing.T) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA, Manual: true, Strict: true})
	r, err := gobuffer.NewRuntime(host.New(), plainBackend{fake, fake})
	require.NoError(t, err)
	w := &world{t: t, runtime: r, cuda: fake, devices: []backendtest.Device{fake}}
	to, from := w.fields(place{backends.Malloc, -1}, gobuffer.Sync, 9, 0),
		w.fields(place{backends.CUDA, 0}, gobuffer.Sync, 9, 20)
	waits := fake.CallCount("Synchronize")
	require.NoError(t, gobuffer.CopyMany(to, from))
	assert.Equal(t, 1, fake.CallCount("Synchronize")-waits, "one wait for all")
	assert.Zero(t, fake.CallCount("CopyBatch"))
	for i := range to {
		assert.Equal(t, w.peek(from[i].Memory()), w.peek(to[i].Memory()))
	}
	require.NoError(t, errors.Join(gobuffer.CopyMany(from, to)))
	closeAll(t, to...)
	closeAll(t, from...)
	fake.AssertClean(t)
}

// TestOneEventStandsForAList, whatever number of arrays it has, on a stream that may end at any time.
func TestOneEventStandsForAList(t *testing.T) {
	const count = 200
	w := unkeptWorld(t, 1, late)
	gobuffer.WaitAtReleases(w.runtime)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 0)
	device := w.array(o, counting(arrayiface.Uint8, count))
	host := w.array(place{backends.CUDAHost, -1}.options(gobuffer.Async), counting(arrayiface.Uint8, count))
	views := func(a *gobuffer.Array) (list []*gobuffer.Array) {
		for i := range count {
			v, err := a.Slice(0, i, i+1, 1)
			require.NoError(t, err)
			list = append(list, v.Lent())
		}
		return list
	}
	to, from := views(host), views(device)
	for range 3 {
		for _, call := range []func() error{func() error { return gobuffer.CopyMany(to, from) },
			func() error { return gobuffer.CopyMany(from, to) }} {
			before := [2]int{w.cuda.CallCount("Record"), w.cuda.CallCount("Wait")}
			require.NoError(t, call())
			assert.LessOrEqual(t, w.cuda.CallCount("Record")-before[0], 4)
			assert.LessOrEqual(t, w.cuda.CallCount("Wait")-before[1], 6)
		}
	}
	w.assertHolds(device, counting(arrayiface.Uint8, count))
	closeAll(t, to...)
	closeAll(t, from...)
	closeAll(t, device, host)
	require.NoError(t, w.cuda.DestroyStream(0, o.Stream))
}

// TestManyCopiesFollowTheStreamOfEachArray, where other libraries have work that hamr does not know of.
func TestManyCopiesFollowTheStreamOfEachArray(t *testing.T) {
	w := newWorld(t, 1, late)
	var to, from []*gobuffer.Array
	var streams []backends.Stream
	for range 3 {
		o := place{backends.CUDAHost, -1}.options(gobuffer.Async)
		o.Stream = w.stream(w.cuda, 0)
		streams = append(streams, o.Stream)
		from = append(from, w.array(o, before))
		to = append(to, w.array(place{backends.CUDA, 0}.options(gobuffer.Async), before))
		w.kernel(w.cuda, 0, o.Stream, from[len(from)-1], after)
	}
	require.NoError(t, gobuffer.CopyMany(to, from))
	for _, a := range to {
		w.assertHolds(a, after)
	}
	closeAll(t, append(to, from...)...)
	for _, s := range streams {
		require.NoError(t, w.cuda.DestroyStream(0, s))
	}
}
