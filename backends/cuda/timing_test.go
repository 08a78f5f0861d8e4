package cuda

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// timedPair records two timed events around some work, and waits for it.
func (r *rig) timedPair(t *testing.T, s backends.Stream) (from, to backends.Event) {
	t.Helper()
	b := r.reserve(t, backends.CUDA, 0, 1000, 0)
	pair := [2]backends.Event{}
	for i := range pair {
		e, err := r.NewTimedEvent(0)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, r.DestroyEvent(0, e)) })
		require.NoError(t, r.Record(0, e, s))
		require.NoError(t, r.Fill(b.Region, []byte{1}, 1000, s))
		pair[i] = e
	}
	require.NoError(t, r.Synchronize(0, s))
	return pair[0], pair[1]
}

func TestElapsedOnStreamsOfEveryContext(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		theirs := r.newForeignStream(t, r.newContext(t, 0))
		for _, s := range []backends.Stream{defaultStream, perThreadStream, r.newStream(t, 0), theirs} {
			from, to := r.timedPair(t, s)
			elapsed, err := r.Elapsed(0, from, to)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, elapsed, time.Duration(0))
		}
	})
}

func TestElapsedOfAnOlderDriver(t *testing.T) {
	r := emulate(t, nil)
	require.NoError(t, r.Probe())
	require.NotZero(t, r.driver.EventElapsedNow)
	r.driver.EventElapsedNow = 0
	from, to := r.timedPair(t, 0)
	elapsed, err := r.Elapsed(0, from, to)
	require.NoError(t, err)
	assert.Equal(t, 1, r.calls("cuEventElapsedTime"))

	v, err := r.enter(0, defaultStream)
	require.NoError(t, err)
	defer v.leave()
	require.NoError(t, r.call(r.driver.EventElapsed, v.slot(0), uintptr(from), uintptr(to)))
	milliseconds := math.Float32frombits(uint32(v.out[0]))
	assert.InDelta(t, float64(milliseconds)*1e6, elapsed.Nanoseconds(), 1, "milliseconds become nanoseconds")
}

func TestTimedEventsAreNotReused(t *testing.T) {
	r := emulate(t, nil)
	e, err := r.NewTimedEvent(0)
	require.NoError(t, err)
	before := r.live("events")
	require.NoError(t, r.DestroyEvent(0, e))
	assert.Equal(t, before-1, r.live("events"))
	assert.Zero(t, r.timed.count.Load())
	_, err = r.Elapsed(0, e, e)
	require.ErrorIs(t, err, backends.ErrUntimed)
}
