package hetero_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/hetero"
)

var errInjected = errors.New("injected")

func TestAnEventIsHandedOutOnlyWhenItIsDone(t *testing.T) {
	w := newWorld(t, 1, late)
	s := w.scheduler
	stream, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	w.work(cuda0, stream)
	pending, err := s.Record(cuda0, stream)
	require.NoError(t, err)
	require.NoError(t, s.GiveEvent(cuda0, pending))
	other, err := s.Record(cuda0, stream)
	require.NoError(t, err)
	assert.NotEqual(t, pending, other)
	w.finish()
	again, err := s.Record(cuda0, stream)
	require.NoError(t, err)
	assert.Equal(t, pending, again)
	for _, e := range []backends.Event{other, again} {
		require.NoError(t, s.GiveEvent(cuda0, e))
	}
	require.NoError(t, s.GiveStream(cuda0, stream))
	events := s.CacheStatistics()[0].Events
	assert.Equal(t, hetero.CacheCounts{Made: 2, Kept: 2, Hits: 1, Misses: 2}, events)
	w.assertNeverBlocked()
}

// One that is pending for long keeps none behind it from reuse: what is kept does not grow.
func TestAnEventOfLongWorkKeepsNoOtherFromReuse(t *testing.T) {
	w := newWorld(t, 1, late)
	s := w.scheduler
	long, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	w.work(cuda0, long)
	short, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	pending, err := s.Record(cuda0, long)
	require.NoError(t, err)
	require.NoError(t, s.GiveEvent(cuda0, pending))
	for range 100 {
		e, err := s.Record(cuda0, short)
		require.NoError(t, err)
		require.NoError(t, w.cuda.Synchronize(0, short))
		require.NoError(t, s.GiveEvent(cuda0, e))
	}
	assert.LessOrEqual(t, s.CacheStatistics()[0].Events.Made, 16)
	require.NoError(t, s.GiveStream(cuda0, long))
	require.NoError(t, s.GiveStream(cuda0, short))
}

func TestAStreamIsHandedOutOnlyWhenItIsIdle(t *testing.T) {
	w := newWorld(t, 1, late)
	s := w.scheduler
	busy, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	w.work(cuda0, busy)
	require.NoError(t, s.GiveStream(cuda0, busy))
	other, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	assert.NotEqual(t, busy, other)
	w.finish()
	again, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	assert.Equal(t, busy, again)
	require.NoError(t, s.GiveStream(cuda0, other))
	require.NoError(t, s.GiveStream(cuda0, again))
	assert.Equal(t, hetero.CacheCounts{Made: 2, Kept: 2, Hits: 1, Misses: 2}, s.CacheStatistics()[0].Streams)
	w.assertNeverBlocked()
}

func TestAStreamIsGivenBackOnce(t *testing.T) {
	w := newWorld(t, 1, late)
	stream, err := w.scheduler.TakeStream(cuda0)
	require.NoError(t, err)
	require.NoError(t, w.scheduler.GiveStream(cuda0, stream))
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, w.scheduler.GiveStream(cuda0, stream), &bad)
	assert.Equal(t, "stream", bad.Argument)
	assert.Contains(t, bad.Accepted, "cuda:0, once")
}

func TestAStreamWaitsForPendingEventsAlone(t *testing.T) {
	w := newWorld(t, 1, late)
	s := w.scheduler
	first, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	second, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	w.work(cuda0, first)
	e, err := s.Record(cuda0, first)
	require.NoError(t, err)
	for _, pending := range []bool{true, false} {
		waited := w.calls(func() {
			waits, err := s.WaitFor(cuda0, second, e)
			require.NoError(t, err)
			assert.Equal(t, pending, waits)
		}, "Wait")
		assert.Equal(t, pending, len(waited) == 1)
		w.finish()
	}
	require.NoError(t, s.GiveEvent(cuda0, e))
	require.NoError(t, s.GiveStream(cuda0, first))
	require.NoError(t, s.GiveStream(cuda0, second))
	w.assertNeverBlocked()
}

func TestTrimDestroysWhatIsDone(t *testing.T) {
	w := newWorld(t, 1, late)
	s := w.scheduler
	var streams []backends.Stream
	for range 2 {
		stream, err := s.TakeStream(cuda0)
		require.NoError(t, err)
		e, err := s.Record(cuda0, stream)
		require.NoError(t, err)
		require.NoError(t, s.GiveEvent(cuda0, e))
		streams = append(streams, stream)
	}
	require.NoError(t, w.cuda.Synchronize(0, streams[0]))
	for _, stream := range streams {
		require.NoError(t, s.GiveStream(cuda0, stream))
	}
	var told []backends.Stream
	s.OnRetire(func(stream backends.Stream) (bool, error) {
		told = append(told, stream)
		return true, nil
	})
	require.NoError(t, s.Trim())
	assert.Equal(t, streams[:1], told, "whoever has memory of a stream is told before it ends")
	statistics := s.CacheStatistics()[0]
	assert.Equal(t, 1, statistics.Streams.Kept)
	assert.Equal(t, 1, statistics.Events.Kept)
	left, events := w.cuda.LiveHandles()
	assert.Equal(t, [2]int{1, 1}, [2]int{left, events})
}

func TestAStreamThatMemoryNeedsIsKept(t *testing.T) {
	w := newWorld(t, 1, late)
	stream, err := w.scheduler.TakeStream(cuda0)
	require.NoError(t, err)
	require.NoError(t, w.scheduler.GiveStream(cuda0, stream))
	over, failed := false, error(nil)
	w.scheduler.OnRetire(func(backends.Stream) (bool, error) { return over, failed })
	require.NoError(t, w.scheduler.Trim())
	assert.Equal(t, 1, w.scheduler.CacheStatistics()[0].Streams.Kept)
	over, failed = true, errInjected
	require.ErrorIs(t, w.scheduler.Trim(), errInjected)
	assert.Equal(t, 1, w.scheduler.CacheStatistics()[0].Streams.Kept)
	failed = nil
}

// After any call of the runtime's has failed, all is accounted for, and serves again.
func TestNothingIsLostWhereCallsFail(t *testing.T) {
	for _, call := range []string{"NewStream", "NewEvent", "Record", "Wait", "Done", "Idle", "DestroyStream",
		"DestroyEvent"} {
		t.Run(call, func(t *testing.T) {
			for nth := 1; nth <= 3; nth++ {
				w := newWorld(t, 1, late)
				w.cuda.FailAt(call, nth, errInjected)
				failures := 0
				note := func(err error) bool {
					if err != nil {
						require.ErrorIs(t, err, errInjected)
						failures++
					}
					return err == nil
				}
				for range 3 {
					stream, err := w.scheduler.TakeStream(cuda0)
					if !note(err) {
						continue
					}
					w.work(cuda0, stream)
					if e, err := w.scheduler.Record(cuda0, stream); note(err) {
						if _, err := w.scheduler.WaitFor(cuda0, stream, e); note(err) {
							require.NoError(t, w.scheduler.GiveEvent(cuda0, e))
						} else {
							require.NoError(t, w.scheduler.DropEvent(cuda0, e))
						}
					}
					require.NoError(t, w.scheduler.GiveStream(cuda0, stream))
					w.finish()
				}
				note(w.scheduler.Trim())
				w.cuda.StopFailing()
				assert.Equal(t, expectedFailures(call, nth), failures, "failure %d", nth)
			}
		})
	}
}

// expectedFailures is one where the walk above gets to the call that fails.
func expectedFailures(call string, nth int) int {
	reached := map[string]int{"NewStream": 1, "NewEvent": 1, "Record": 3, "Wait": 3, "Done": 3, "Idle": 3,
		"DestroyStream": 1, "DestroyEvent": 1}
	if nth <= reached[call] {
		return 1
	}
	return 0
}

// What failed before is the error of whoever meets it first, and of nobody afterwards.
func TestFailedWorkIsToldOnce(t *testing.T) {
	w := newWorld(t, 1, late)
	s := w.scheduler
	stream, err := s.TakeStream(cuda0)
	require.NoError(t, err)
	e, err := s.Record(cuda0, stream)
	require.NoError(t, err)
	require.NoError(t, s.GiveEvent(cuda0, e))
	w.finish()
	w.cuda.FailAt("Done", 1, errInjected)
	_, err = s.Record(cuda0, stream)
	require.ErrorIs(t, err, errInjected)
	assert.ErrorContains(t, err, "enqueued before on cuda:0")
	e, err = s.Record(cuda0, stream)
	require.NoError(t, err)
	require.NoError(t, s.GiveEvent(cuda0, e))
	require.NoError(t, s.GiveStream(cuda0, stream))
}

func TestPlacesThatAreNot(t *testing.T) {
	w := newWorld(t, 2, late)
	for place, want := range map[hetero.Place]string{
		{Backend: "cuda", Device: 2}:  "device is 2: accepted is 0 … 1 of cuda",
		{Backend: "cuda", Device: -1}: "device is -1: accepted is 0 … 1 of cuda",
		{Backend: "host", Device: 0}:  "place is host:0: accepted is a device of a backend that has streams: cuda, hip",
		{Backend: "metal", Device: 0}: `backend is "metal": accepted is one of host, cuda, hip`,
	} {
		_, err := w.scheduler.TakeStream(place)
		var bad *gobuffer.ArgumentError
		require.ErrorAs(t, err, &bad)
		assert.EqualError(t, err, want)
	}
	none := newWorld(t, 0, late)
	_, err := none.scheduler.Record(cuda0, 1)
	assert.EqualError(t, err, "device is 0: accepted is none: cuda has no devices here")
	var zero *hetero.Scheduler
	for _, s := range []*hetero.Scheduler{zero, {}} {
		_, err := s.TakeStream(cuda0)
		require.ErrorIs(t, err, gobuffer.ErrZero)
		_, err = s.Accelerators()
		require.ErrorIs(t, err, gobuffer.ErrZero)
	}
}

// A child that was forked has caches of its own, and its runtimes say why they do not serve.
func TestAForkedChildIsTold(t *testing.T) {
	w := newWorld(t, 1, late)
	forked := &backends.ForkedError{Backend: "cuda", Reason: "code 3"}
	w.cuda.FailAt("Probe", 0, forked)
	_, err := w.scheduler.TakeStream(cuda0)
	require.ErrorIs(t, err, error(forked))
	list, err := w.scheduler.Accelerators("cuda")
	require.NoError(t, err)
	assert.Empty(t, list)
	w.cuda.StopFailing()
}

func TestManyGoroutinesShareACache(t *testing.T) {
	w := newWorld(t, 1, lateWork)
	s := w.scheduler
	var users sync.WaitGroup
	var mutex sync.Mutex
	streams, events := map[backends.Stream]bool{}, map[backends.Event]bool{}
	for range 8 {
		users.Go(func() {
			for range 50 {
				stream, err := s.TakeStream(cuda0)
				assert.NoError(t, err)
				e, err := s.Record(cuda0, stream)
				assert.NoError(t, err)
				mutex.Lock()
				assert.False(t, streams[stream] || events[e], "handed out twice")
				streams[stream], events[e] = true, true
				mutex.Unlock()
				_, err = s.WaitFor(cuda0, stream, e)
				assert.NoError(t, err)
				mutex.Lock()
				delete(streams, stream)
				delete(events, e)
				mutex.Unlock()
				assert.NoError(t, s.GiveEvent(cuda0, e))
				assert.NoError(t, s.GiveStream(cuda0, stream))
			}
		})
	}
	users.Wait()
	w.assertNeverBlocked()
}

func TestWhoseStreamsAreTheSchedulers(t *testing.T) {
	w := newWorld(t, 1, late)
	require.NoError(t, w.cuda.Probe())
	foreign, err := w.cuda.NewStream(0)
	require.NoError(t, err)
	assert.False(t, w.scheduler.Has(foreign))
	require.NoError(t, w.cuda.DestroyStream(0, foreign))
	stream, err := w.scheduler.TakeStream(cuda0)
	require.NoError(t, err)
	assert.True(t, w.scheduler.Has(stream))
	require.NoError(t, w.scheduler.GiveStream(cuda0, stream))
	assert.True(t, w.scheduler.Has(stream), "it is kept")
	w.cuda.FailAt("DestroyStream", 1, errInjected)
	require.ErrorIs(t, w.scheduler.Trim(), errInjected)
	assert.True(t, w.scheduler.Has(stream), "it is there still")
	require.NoError(t, w.scheduler.Trim())
	assert.False(t, w.scheduler.Has(stream))
	assert.False(t, (*hetero.Scheduler)(nil).Has(stream))
}
