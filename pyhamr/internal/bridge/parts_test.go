package bridge

import (
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

func TestPartsAreOfTheUseThatTheThreadIsIn(t *testing.T) {
	before, thread := ThreadUse, int64(0)
	defer func() { ThreadUse = before }()
	ThreadUse = func(use int64) (was int64) {
		if was = thread; use >= 0 {
			thread = use
		}
		return was
	}
	one, other := madeParts(t), madeParts(t)
	outer, err := EnterParts(one)
	require.NoError(t, err)
	assert.Equal(t, int64(outer), thread)
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
	assert.Equal(t, int64(inner), thread)
	LeaveParts(outer) // out of turn
	assert.Equal(t, int64(inner), thread)
	LeaveParts(inner)
	_, is, _ = PartFor(uint64(thread), backends.HostDevice, 1000)
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
