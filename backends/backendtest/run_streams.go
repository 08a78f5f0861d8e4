package backendtest

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func (s suite) newStream(t *testing.T) backends.Stream {
	t.Helper()
	stream, err := s.streams.NewStream(s.context)
	require.NoError(t, err)
	require.NotZero(t, stream, "zero is the default stream")
	t.Cleanup(func() { assert.NoError(t, s.streams.DestroyStream(s.context, stream)) })
	return stream
}

func (s suite) newEvent(t *testing.T) backends.Event {
	t.Helper()
	event, err := s.streams.NewEvent(s.context)
	require.NoError(t, err)
	require.NotZero(t, event, "zero is no event")
	t.Cleanup(func() { assert.NoError(t, s.streams.DestroyEvent(s.context, event)) })
	return event
}

func (s suite) testStreams(t *testing.T) {
	if s.streams == nil {
		return
	}
	t.Run("Resolve", s.testResolve)
	t.Run("Polling", s.testPolling)
	t.Run("Events", s.testEvents)
	t.Run("Wait", s.testWait)
	t.Run("WaitTakesTheLatestRecord", s.testWaitTakesTheLatestRecord)
	t.Run("Destroy", s.testDestroy)
	t.Run("PerThread", s.testPerThread)
	t.Run("SynchronizeDevice", s.testSynchronizeDevice)
	t.Run("ForeignWork", s.testForeignWork)
	t.Run("Timer", s.testTimer)
	t.Run("AdoptedEvent", s.testAdoptedEvent)
}

// testPerThread makes the calling thread's stream wait, which its stand-in does not.
func (s suite) testPerThread(t *testing.T) {
	const size, perThread = 100001, 2
	if _, err := s.streams.StreamDevice(perThread); errors.Is(err, backends.ErrNoStream) {
		return // not every runtime has one
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	producer, event := s.newStream(t), s.newEvent(t)
	a, b := s.allocate(t, size, true, producer), s.allocate(t, size, false, producer)
	s.wait(t, producer)
	require.NoError(t, s.b.Fill(a, []byte{9}, size, producer))
	require.NoError(t, s.streams.Record(s.context, event, producer))
	require.NoError(t, s.streams.Wait(s.context, perThread, event))
	s.copy(t, b, a, size, perThread)
	after, err := s.streams.Resolve(s.context, perThread)
	require.NoError(t, err)
	equal(t, repeated(9, size), s.read(t, b, size, after), "copied after the fill")
}

func (s suite) testSynchronizeDevice(t *testing.T) {
	whole, ok := backends.As[backends.DeviceSynchronizer](s.b)
	if !ok {
		return
	}
	const size, fills = 1000, 50
	streams := []backends.Stream{0, s.newStream(t), s.newStream(t)}
	var regions []backends.Region
	for _, stream := range streams {
		region := s.allocate(t, size, false, stream)
		for i := range fills {
			require.NoError(t, s.b.Fill(region, []byte{byte(i)}, size, stream))
		}
		regions = append(regions, region)
	}
	require.NoError(t, whole.SynchronizeDevice(s.context))
	for i, stream := range streams {
		idle, err := s.streams.Idle(s.context, stream)
		require.NoError(t, err)
		assert.True(t, idle, "stream %d", i)
		equal(t, repeated(fills-1, size), s.read(t, regions[i], size, stream), "after all work of the device")
	}
}

func (s suite) testResolve(t *testing.T) {
	here, err := s.streams.Resolve(s.context, 0)
	require.NoError(t, err)
	elsewhere := make(chan backends.Stream)
	go func() {
		again, err := s.streams.Resolve(s.context, here)
		assert.NoError(t, err)
		elsewhere <- again
	}()
	assert.Equal(t, here, <-elsewhere, "a resolved stream means the same on every thread")

	mine := s.newStream(t)
	resolved, err := s.streams.Resolve(s.context, mine)
	require.NoError(t, err)
	assert.Equal(t, mine, resolved)
	assert.NotEqual(t, here, resolved)
}

func (s suite) testPolling(t *testing.T) {
	stream, event := s.newStream(t), s.newEvent(t)
	region := s.allocate(t, 10000, false, stream)
	require.NoError(t, s.b.Fill(region, []byte{1, 2}, 5000, stream))
	require.NoError(t, s.streams.Record(s.context, event, stream))
	within(t, func() (bool, error) { return s.streams.Done(s.context, event) })
	within(t, func() (bool, error) { return s.streams.Idle(s.context, stream) })
	require.NoError(t, s.streams.Synchronize(s.context, stream))
	idle, err := s.streams.Idle(s.context, stream)
	require.NoError(t, err)
	assert.True(t, idle, "synchronised streams are idle")
}

func (s suite) testEvents(t *testing.T) {
	stream, event := s.newStream(t), s.newEvent(t)
	done, err := s.streams.Done(s.context, event)
	require.NoError(t, err)
	assert.True(t, done, "an event that was never recorded stands for no work")
	require.NoError(t, s.streams.SynchronizeEvent(s.context, event))
	require.NoError(t, s.streams.Wait(s.context, stream, event))

	const size = 100001
	region := s.allocate(t, size, true, stream)
	host, back := scratch(t, size)
	for value := byte(1); value < 4; value++ {
		require.NoError(t, s.b.Fill(region, []byte{value}, size, stream))
		s.copy(t, back, region, size, stream)
		require.NoError(t, s.streams.Record(s.context, event, stream))
		require.NoError(t, s.streams.SynchronizeEvent(s.context, event))
		equal(t, repeated(value, size), host, "after the event")
		done, err := s.streams.Done(s.context, event)
		require.NoError(t, err)
		assert.True(t, done)
	}
}

func repeated(value byte, size int) []byte {
	return bytes.Repeat([]byte{value}, size)
}

// testWait passes data back and forth between two streams.
func (s suite) testWait(t *testing.T) {
	const size, rounds = 100001, 10
	producer, consumer := s.newStream(t), s.newStream(t)
	ready, taken := s.newEvent(t), s.newEvent(t)
	src, dst := s.allocate(t, size, false, 0), s.allocate(t, size, false, 0)
	s.wait(t, 0)
	for i := range rounds {
		require.NoError(t, s.streams.Wait(s.context, producer, taken))
		require.NoError(t, s.b.Fill(src, []byte{byte(i)}, size, producer))
		require.NoError(t, s.streams.Record(s.context, ready, producer))
		require.NoError(t, s.streams.Wait(s.context, consumer, ready))
		s.copy(t, shifted(dst, i), src, size-rounds, consumer)
		require.NoError(t, s.streams.Record(s.context, taken, consumer))
	}
	require.NoError(t, s.streams.Synchronize(s.context, producer))
	got := s.read(t, dst, size-1, consumer)
	for i := range rounds - 1 {
		assert.EqualValues(t, i, got[i])
	}
	equal(t, repeated(rounds-1, size-rounds), got[rounds-1:], "of the last round")
}

func (s suite) testWaitTakesTheLatestRecord(t *testing.T) {
	const size = 5000
	first, second := s.newStream(t), s.newStream(t)
	event := s.newEvent(t)
	a, b := s.allocate(t, size, false, 0), s.allocate(t, size, false, 0)
	s.wait(t, 0)
	require.NoError(t, s.streams.Record(s.context, event, second))
	require.NoError(t, s.b.Fill(a, []byte{9}, size, first))
	require.NoError(t, s.streams.Record(s.context, event, first))
	require.NoError(t, s.streams.Wait(s.context, second, event))
	require.NoError(t, s.streams.Record(s.context, event, second))
	s.copy(t, b, a, size, second)
	equal(t, repeated(9, size), s.read(t, b, size, second), "copied after the fill")
}

func (s suite) testDestroy(t *testing.T) {
	const size = 100001
	region := s.allocate(t, size, false, 0)
	s.wait(t, 0)
	stream, err := s.streams.NewStream(s.context)
	require.NoError(t, err)
	event, err := s.streams.NewEvent(s.context)
	require.NoError(t, err)
	require.NoError(t, s.b.Fill(region, []byte{3}, size, stream))
	require.NoError(t, s.streams.Record(s.context, event, stream))
	require.NoError(t, s.streams.DestroyStream(s.context, stream))
	require.NoError(t, s.streams.SynchronizeEvent(s.context, event), "work on a destroyed stream is still done")
	require.NoError(t, s.streams.DestroyEvent(s.context, event))
	equal(t, repeated(3, size), s.read(t, region, size, 0), "of a destroyed stream")
}

// testAdoptedEvent waits for the event of somebody who lets go of it at once.
func (s suite) testAdoptedEvent(t *testing.T) {
	adopter, ok := backends.As[backends.EventAdopter](s.b)
	producer, plays := backends.As[EventProducer](s.b)
	if !ok || !plays {
		return
	}
	const size = 100001
	theirs, own := s.newStream(t), s.newStream(t)
	a, b := s.allocate(t, size, true, theirs), s.allocate(t, size, false, own)
	s.wait(t, theirs)
	for value := byte(1); value < 5; value++ {
		require.NoError(t, s.b.Fill(a, []byte{value}, size, theirs))
		handle, release, err := producer.VendorEvent(s.context, theirs)
		require.NoError(t, err)
		event, err := adopter.AdoptEvent(s.context, handle)
		require.NoError(t, err)
		release()
		require.NoError(t, s.streams.Wait(s.context, own, event))
		s.copy(t, b, a, size, own)
		equal(t, repeated(value, size), s.read(t, b, size, own), "copied after the event")
		require.NoError(t, s.streams.SynchronizeEvent(s.context, event))
		done, err := s.streams.Done(s.context, event)
		require.NoError(t, err)
		assert.True(t, done)
		require.NoError(t, s.streams.DestroyEvent(s.context, event))
	}
}

// testWaitElsewhere has each other device wait for this one's work, and its memory filled again
// only when that has been read.
func (s suite) testWaitElsewhere(t *testing.T, devices []int) {
	if s.streams == nil {
		return
	}
	const size, rounds = 100001, 5
	for _, other := range devices {
		if other == s.device || !s.supportedBy(other) {
			continue
		}
		far := s
		far.device, far.context = other, other
		producer, ready := s.newStream(t), s.newEvent(t)
		consumer, taken := far.newStream(t), far.newEvent(t)
		src, dst := s.allocate(t, size, false, 0), far.allocate(t, size, false, 0)
		s.wait(t, 0)
		far.wait(t, 0)
		for i := range rounds {
			require.NoError(t, s.streams.Wait(s.context, producer, taken))
			require.NoError(t, s.b.Fill(src, []byte{byte(i + 1)}, size, producer))
			require.NoError(t, s.streams.Record(s.context, ready, producer))
			require.NoError(t, s.streams.Wait(other, consumer, ready))
			far.copy(t, shifted(dst, i), src, size-rounds, consumer)
			require.NoError(t, s.streams.Record(other, taken, consumer))
		}
		require.NoError(t, s.streams.Synchronize(s.context, producer))
		got := far.read(t, dst, size-1, consumer)
		for i := range rounds - 1 {
			assert.EqualValues(t, i+1, got[i])
		}
		equal(t, repeated(rounds, size-rounds), got[rounds-1:], "of the last round, from device %d to %d", s.device, other)
	}
}
