package backendtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func (s suite) newTimedEvent(t *testing.T, timer backends.Timer) backends.Event {
	t.Helper()
	event, err := timer.NewTimedEvent(s.context)
	require.NoError(t, err)
	require.NotZero(t, event, "zero is no event")
	t.Cleanup(func() { assert.NoError(t, s.streams.DestroyEvent(s.context, event)) })
	return event
}

func (s suite) testTimer(t *testing.T) {
	timer, ok := backends.As[backends.Timer](s.b)
	if !ok {
		return
	}
	stream, plain := s.newStream(t), s.newEvent(t)
	first, second := s.newTimedEvent(t, timer), s.newTimedEvent(t, timer)
	record := func(e backends.Event) { require.NoError(t, s.streams.Record(s.context, e, stream)) }
	refused := func(want error, from, to backends.Event) {
		t.Helper()
		_, err := timer.Elapsed(s.context, from, to)
		require.ErrorIs(t, err, want)
	}
	record(plain)
	record(first)
	s.wait(t, stream)
	refused(backends.ErrNotRecorded, first, second)
	refused(backends.ErrNotRecorded, second, first)
	refused(backends.ErrUntimed, first, plain)
	refused(backends.ErrUntimed, plain, first)

	region := s.allocate(t, 1<<16, false, stream)
	for range 3 {
		record(first)
		require.NoError(t, s.b.Fill(region, []byte{1, 2}, 1<<15, stream))
		record(second)
		if _, err := timer.Elapsed(s.context, first, second); err != nil {
			require.ErrorIs(t, err, backends.ErrNotDone, "before the work is done")
		}
		require.NoError(t, s.streams.SynchronizeEvent(s.context, second))
		forth, err := timer.Elapsed(s.context, first, second)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, forth, time.Duration(0), "the second is reached after the first")
		back, err := timer.Elapsed(s.context, second, first)
		require.NoError(t, err)
		assert.InDelta(t, forth, -back, float64(time.Microsecond))
		none, err := timer.Elapsed(s.context, first, first)
		require.NoError(t, err)
		assert.Zero(t, none)
	}
}
