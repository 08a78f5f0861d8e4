package gobuffer_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// TestBlocksOfAnotherRuntimesMemoryComeAfterTheDevicesOwnWork: that is ordinary memory to the device's runtime, which
// reads it before the call returns. A stream that waits does not make the host wait.
func TestBlocksOfAnotherRuntimesMemoryComeAfterTheDevicesOwnWork(t *testing.T) {
	manual := backendtest.FakeOptions{Manual: true}
	w := newVendors(t, turnedRound, manual, manual)
	source := w.array(place{backends.HIPUnified, 0}.options(gobuffer.Async), before)
	h, err := source.Access(backends.SpaceCUDA, 1)
	require.NoError(t, err)
	require.False(t, h.Temporary())
	o := place{backends.CUDA, 1}.options(gobuffer.Async)
	o.Stream = w.stream(w.cuda, 1)
	target := w.array(o, numbers(0, 0, 0, 0, 0, 0))
	index := w.indices(place{backends.Malloc, backends.HostDevice}, arrayiface.Int64, []int{3, 0})
	require.NoError(t, w.cuda.Launch(1, 0, func(func(backends.Address, int) []byte) {
		w.hip.Poke(h.Address(), []byte{9, 0, 0, 0})
	}))
	require.NoError(t, h.Release())
	require.NoError(t, gobuffer.CopyBlocks([]*gobuffer.Array{target}, index, []*gobuffer.Array{source}, index))
	w.assertHolds(target, numbers(9, 0, 0, 4, 0, 0))
	closeAll(t, source, target, index)
}

// TestBlocksBegunBeforeAnotherWayIsTaken are waited for when the memory is given back, if that way fails at once: else
// the fake tells of work that has yet to run on freed memory.
func TestBlocksBegunBeforeAnotherWayIsTaken(t *testing.T) {
	for _, by := range []place{{backends.Malloc, -1}, {backends.CUDA, 0}} {
		w := newWorld(t, 1, late)
		index := w.indices(by, arrayiface.Int64, []int{1, 0})
		var all, to, from []*gobuffer.Array
		for range 2 { // which have too many rows for one step
			for _, list := range []*[]*gobuffer.Array{&to, &from} {
				o := place{backends.CUDAAsync, 0}.options(gobuffer.Async)
				o.Stream = w.stream(w.cuda, 0)
				if list == &to && len(to) > 0 {
					o.Stream = to[0].Stream()
				}
				whole := w.array(o, model{arrayiface.Uint8, []int{2, 600, 17}, make([]byte, 2*600*17)})
				rows, err := whole.Slice(2, 0, 16, 1)
				require.NoError(t, err)
				*list, all = append(*list, rows), append(all, whole, rows)
			}
		}
		calls := w.cuda.CallCount("CopyBlocks")
		w.cuda.FailAt("CopyBlocks", 2, errors.ErrUnsupported)
		w.cuda.FailAt("CopyBatch", 0, errInjected)
		w.cuda.FailAt("Copy", 0, errInjected)
		w.cuda.FailAt("Convert", 0, errInjected)
		require.ErrorIs(t, gobuffer.CopyBlocks(to, index, from, index), errInjected)
		w.cuda.StopFailing()
		assert.Equal(t, 2, w.cuda.CallCount("CopyBlocks")-calls)
		closeAll(t, append(all, index)...)
	}
}

// hasty is a device that reads blocks of ordinary memory when it is told of them, and writes such memory late.
type hasty struct {
	*backendtest.Fake
	read *[][]byte
}

func (h hasty) CopyBlocks(b *backends.Blocks, s backends.Stream) (backends.Progress, error) {
	for i := range b.Planes {
		p := &b.Planes[i]
		if p.Src.Allocator.Kind() == backends.Pageable {
			held := bytes.Clone(hostBytes(p.Src.Address, p.SrcStride*(b.From.Extent-1)+b.Size))
			*h.read = append(*h.read, held)
			p.Src.Address = backends.Address(uintptr(unsafe.Pointer(unsafe.SliceData(held))))
		}
	}
	return h.Fake.CopyBlocks(b, s)
}

// TestBlocksAreGatheredOnTheHostWhereADeviceHasNoMemory for those that are read before they are overwritten.
func TestBlocksAreGatheredOnTheHostWhereADeviceHasNoMemory(t *testing.T) {
	const n = 64
	w := newWorld(t, 1, backendtest.FakeOptions{Manual: true, Still: true, Strict: true, Memory: n})
	var err error
	w.runtime, err = gobuffer.NewRuntime(host.New(), hasty{w.cuda, new([][]byte)}, w.hip)
	require.NoError(t, err)
	gobuffer.WaitAtReleases(w.runtime)
	whole, to, from := make([]byte, n), make([]int64, n), make([]int64, n)
	for i := range n {
		whole[i], to[i], from[i] = byte(i), int64(i), int64(n-1-i)
	}
	a := w.array(homeOfDevice.options(gobuffer.Async), model{arrayiface.Uint8, []int{n}, bytes.Clone(whole)})
	toIndex, err := gobuffer.Adopt(to)
	require.NoError(t, err)
	fromIndex, err := gobuffer.Adopt(from)
	require.NoError(t, err)
	list := []*gobuffer.Array{a}
	require.NoError(t, gobuffer.CopyBlocks(list, toIndex.Array, list, fromIndex.Array))
	slices.Reverse(whole)
	w.assertHolds(a, model{arrayiface.Uint8, []int{n}, whole})
	closeAll(t, a, toIndex.Array, fromIndex.Array)
}
