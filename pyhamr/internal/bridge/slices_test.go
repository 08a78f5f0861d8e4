package bridge

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// untilStopped is an operation that goes on until it is asked to end.
func untilStopped(over *bool) func(*backends.Stop) error {
	return func(stop *backends.Stop) error {
		for !stop.Asked() {
			continue
		}
		time.Sleep(20 * time.Millisecond) // it ends what it is at
		*over = true
		return backends.ErrStopped
	}
}

func TestAnOperationGoesOnUntilItIsAskedToEnd(t *testing.T) {
	var over bool
	var busy *BusyError
	require.ErrorAs(t, inSlices(untilStopped(&over)), &busy)
	require.ErrorAs(t, Proceed(busy.Operation), &busy)
	f := Classify(busy)
	assert.Equal(t, Busy, f.Kind)
	assert.EqualValues(t, busy.Operation, f.Size)
	require.ErrorIs(t, Stop(busy.Operation), backends.ErrStopped)
	assert.True(t, over, "it uses nothing any more")
	require.ErrorIs(t, Proceed(busy.Operation), gobuffer.ErrFreed)
	require.ErrorIs(t, Stop(busy.Operation), gobuffer.ErrFreed)
}

func TestTheOutcomeOfAnOperation(t *testing.T) {
	wrong := errors.New("wrong")
	for name, outcome := range map[string]error{"well": nil, "not": wrong} {
		require.ErrorIs(t, inSlices(func(*backends.Stop) error { return outcome }), outcome, name)
		release := make(chan struct{})
		var busy *BusyError
		require.ErrorAs(t, inSlices(func(*backends.Stop) error {
			<-release
			return outcome
		}), &busy, name)
		close(release)
		require.ErrorIs(t, Proceed(busy.Operation), outcome, name)
	}
	var crash *PanicError
	require.ErrorAs(t, inSlices(func(*backends.Stop) error { panic("a bug") }), &crash)
	assert.Empty(t, operations.open)
}

// TestOnlyWhatMayTakeLongIsInSlices has no device: what is on the host is copied where it is asked for.
func TestOnlyWhatMayTakeLongIsInSlices(t *testing.T) {
	d := describe(arrayiface.Uint8, 64<<20)
	down := movement{to: backends.Malloc, from: backends.CUDA, bytes: longBytes}
	long := func(m movement) bool {
		is, err := m.long(&d.Descriptor)
		require.NoError(t, err)
		return is
	}
	assert.False(t, long(down), "nobody has asked for a prompt return")
	d.Flags |= promptFlag
	assert.True(t, long(movement{to: backends.HIP, from: backends.CUDA, bytes: longBytes}),
		"between two runtimes, perhaps by way of the host")
	assert.False(t, long(movement{to: backends.CUDAAsync, from: backends.CUDA, bytes: longBytes}), "within one")
	assert.True(t, long(down))
	assert.True(t, long(movement{to: backends.CUDA, from: backends.Malloc, bytes: longBytes}))
	assert.False(t, long(movement{to: backends.CUDA, from: backends.CUDA, bytes: longBytes}), "nobody waits")
	assert.False(t, long(movement{to: backends.Malloc, from: backends.CPP, bytes: longBytes}))
	assert.False(t, long(movement{to: backends.Malloc, from: backends.CUDA, bytes: askDownBytes - 1}))
	d.Stream = 2
	assert.False(t, long(down), "it means another stream on another thread")
}
