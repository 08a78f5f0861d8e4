package bridge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// madeParts are parts of ordinary memory, which stand for those of a device.
func madeParts(t *testing.T) (number uint64) {
	a, err := Runtime.NewArray(arrayiface.Uint8, []int{4096}, gobuffer.Options{Allocator: backends.Malloc})
	require.NoError(t, err)
	p, err := gobuffer.NewParts(a, 4096)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	return parts.keep(p)
}

// stubThread has one number, in place of each thread's own.
func stubThread(t *testing.T) *int64 {
	before, thread := ThreadUse, new(int64)
	t.Cleanup(func() { ThreadUse = before })
	ThreadUse = func(use int64) (was int64) {
		if was = *thread; use >= 0 {
			*thread = use
		}
		return was
	}
	return thread
}

func TestUsesThatEndInAnyOrder(t *testing.T) {
	thread, choose := stubThread(t), rand.New(rand.NewPCG(1, 1))
	all := []uint64{madeParts(t), madeParts(t), 0}
	known := len(partsUses.open)
	for range 2000 {
		var uses, of []uint64 // the innermost is the last one
		for len(uses) < 4 {
			number := all[choose.IntN(len(all))]
			use, err := EnterParts(number)
			require.NoError(t, err)
			uses, of = append(uses, use), append(of, number)
		}
		for len(uses) > 0 {
			i := choose.IntN(len(uses))
			if here := *thread; choose.IntN(2) == 0 {
				*thread = 0 // another thread ends it
				LeaveParts(uses[i])
				*thread = here
			} else {
				LeaveParts(uses[i])
			}
			uses, of = slices.Delete(uses, i, i+1), slices.Delete(of, i, i+1)
			at, is, err := PartFor(uint64(*thread), backends.HostDevice, 1)
			require.NoError(t, err)
			require.Equal(t, len(of) > 0 && of[len(of)-1] != 0, is)
			if is {
				require.NoError(t, FreeFor(at))
			}
		}
		require.Zero(t, *thread)
	}
	assert.Len(t, partsUses.open, known)
	for _, number := range all {
		CloseParts(number)
	}
}

func TestPartsAreOfTheUseThatTheThreadIsIn(t *testing.T) {
	thread := stubThread(t)
	one, other := madeParts(t), madeParts(t)
	outer, err := EnterParts(one)
	require.NoError(t, err)
	assert.Equal(t, int64(outer), *thread)
	first, is, err := PartFor(outer, backends.HostDevice, 1000)
	require.NoError(t, err)
	assert.True(t, is)
	_, is, _ = PartFor(outer, 0, 1000)
	assert.False(t, is, "it is another device")
	_, is, err = PartFor(outer, backends.HostDevice, 4096)
	assert.True(t, is)
	assert.ErrorAs(t, err, new(*backends.OutOfMemoryError))

	inner, err := EnterParts(other)
	require.NoError(t, err)
	second, _, err := PartFor(inner, backends.HostDevice, 1000)
	require.NoError(t, err)
	none, err := EnterParts(0)
	require.NoError(t, err)
	_, is, _ = PartFor(none, backends.HostDevice, 1000)
	assert.False(t, is)
	LeaveParts(none)
	LeaveParts(none)
	assert.Equal(t, int64(inner), *thread)
	LeaveParts(outer) // out of turn
	assert.Equal(t, int64(inner), *thread)
	LeaveParts(inner)
	_, is, _ = PartFor(uint64(*thread), backends.HostDevice, 1000)
	assert.False(t, is, "the use that is left has ended")

	assert.Equal(t, int64(2), lentParts.count.Load())
	assert.Equal(t, 1, CloseParts(one))
	assert.Zero(t, CloseParts(one))
	for _, at := range []backends.Address{first, second} {
		require.NoError(t, FreeFor(at))
		assert.Error(t, FreeFor(at))
	}
	assert.Zero(t, lentParts.count.Load())
	assert.Zero(t, CloseParts(other))
	_, err = EnterParts(other)
	assert.Error(t, err)
	_, err = TakePart(other, 1)
	assert.Error(t, err)
	GivePart(other, first)
}
