package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
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
