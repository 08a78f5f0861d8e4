package cuda

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestResolve(t *testing.T) {
	r := emulate(t, nil)
	for _, s := range []backends.Stream{defaultStream, legacyStream} {
		resolved, err := r.Resolve(0, s)
		require.NoError(t, err)
		assert.Equal(t, legacyStream, resolved)
	}
	resolved, err := r.Resolve(0, 0x12345)
	require.NoError(t, err)
	assert.EqualValues(t, 0x12345, resolved)
	_, err = r.Resolve(7, perThreadStream)
	assert.ErrorContains(t, err, "no device 7")
}

// What the resolved stream does comes after what the thread's stream held.
func TestPerThreadStream(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		const size, rounds = 1 << 20, 20
		first, second := r.reserve(t, backends.CUDA, 0, size, 0), r.reserve(t, backends.CUDA, 0, size, 0)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var known backends.Stream
		for i := range rounds {
			r.keepBusy(t, perThreadStream)
			require.NoError(t, r.Fill(first.Region, []byte{byte(i + 1)}, size, perThreadStream))
			s, err := r.Resolve(0, perThreadStream)
			require.NoError(t, err)
			assert.Greater(t, s, perThreadStream)
			if known != 0 {
				assert.Equal(t, known, s, "a thread keeps its stream")
			}
			known = s
			require.NoError(t, copied(r.Copy(second.Region, first.Region, size, s)))
			require.Equal(t, size, bytes.Count(r.read(t, second.Region, size, s), []byte{byte(i + 1)}))
		}
	})
}

// Work on the default stream is over before work that is enqueued later on a legacy stream begins.
func TestLegacyStream(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		const size = 1 << 20
		first, second := r.reserve(t, backends.CUDA, 0, size, 0), r.reserve(t, backends.CUDA, 0, size, 0)
		s, err := r.NewLegacyStream(0)
		require.NoError(t, err)
		device, err := r.StreamDevice(s)
		require.NoError(t, err)
		assert.Zero(t, device)
		require.NoError(t, r.Fill(second.Region, []byte{1}, size, s))
		require.NoError(t, r.Synchronize(0, s))
		r.keepBusy(t, legacyStream)
		require.NoError(t, r.Fill(first.Region, []byte{7}, size, legacyStream))
		require.NoError(t, copied(r.Copy(second.Region, first.Region, size, s)))
		require.Equal(t, size, bytes.Count(r.read(t, second.Region, size, s), []byte{7}))
		require.NoError(t, r.DestroyStream(0, s))
		_, err = r.NewLegacyStream(7)
		assert.ErrorContains(t, err, "no device 7")
	})
}

func TestPerThreadStreamsAreBounded(t *testing.T) {
	r := emulate(t, nil)
	var mu sync.Mutex
	var group sync.WaitGroup
	seen := map[backends.Stream]bool{}
	for range 40 {
		group.Go(func() {
			runtime.LockOSThread() // for good: each has a thread of its own
			s, err := r.Resolve(0, perThreadStream)
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			seen[s] = true
		})
	}
	group.Wait()
	assert.Greater(t, len(seen), 1)
	assert.LessOrEqual(t, len(seen), perThreadStreams)
	assert.Equal(t, len(seen), r.live("streams"))
}

// Streams of other contexts than the primary one, as some libraries make.
func TestStreamsOfAnotherContext(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		const size = 300000
		foreign := r.newForeignStream(t, r.newContext(t, 0))
		ours := r.newStream(t, 0)
		event, err := r.NewEvent(0)
		require.NoError(t, err)
		data, host := r.host(t, size)
		memory := r.reserve(t, backends.CUDA, 0, size, 0)
		for i := range byte(20) {
			// There and back: the event is recorded in one context, then in the other.
			require.NoError(t, r.Fill(memory.Region, []byte{i}, size, foreign))
			require.NoError(t, r.Record(0, event, foreign))
			require.NoError(t, r.Wait(0, ours, event))
			require.NoError(t, copied(r.Copy(host, memory.Region, size, ours)))
			require.NoError(t, r.Record(0, event, ours))
			require.NoError(t, r.SynchronizeEvent(0, event))
			require.Equal(t, size, bytes.Count(data, []byte{i}))
			require.NoError(t, r.Record(0, event, ours))
			require.NoError(t, r.Wait(0, foreign, event))
		}
		require.NoError(t, r.Record(0, event, foreign))
		require.NoError(t, r.SynchronizeEvent(0, event))
		done, err := r.Done(0, event)
		require.NoError(t, err)
		assert.True(t, done)
		require.NoError(t, r.DestroyEvent(0, event))
		require.NoError(t, r.Synchronize(0, foreign))
	})
}

func TestEventsAreReused(t *testing.T) {
	r := emulate(t, nil)
	for range 3 {
		var events []backends.Event
		for range mostIdleEvents + 10 {
			e, err := r.NewEvent(0)
			require.NoError(t, err)
			require.NoError(t, r.Record(0, e, 0))
			events = append(events, e)
		}
		require.NoError(t, r.Synchronize(0, 0))
		for _, e := range events {
			require.NoError(t, r.DestroyEvent(0, e))
		}
		assert.Equal(t, mostIdleEvents, r.live("events"))
	}
}

// An event that is reused while the work it once stood for is pending stands for
// no work all the same.
func TestReusedEventsAreBlank(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		stream := r.newStream(t, 0)
		first, err := r.NewEvent(0)
		require.NoError(t, err)
		r.keepBusy(t, stream)
		require.NoError(t, r.Record(0, first, stream))
		require.NoError(t, r.DestroyEvent(0, first))
		second, err := r.NewEvent(0)
		require.NoError(t, err)
		assert.Equal(t, first, second)
		done, err := r.Done(0, second)
		require.NoError(t, err)
		assert.True(t, done)
		require.NoError(t, r.SynchronizeEvent(0, second))
		require.NoError(t, r.Wait(0, legacyStream, second))
		idle, err := r.Idle(0, legacyStream)
		require.NoError(t, err)
		assert.True(t, idle)

		require.NoError(t, r.Record(0, second, stream))
		require.NoError(t, r.SynchronizeEvent(0, second))
		idle, err = r.Idle(0, stream)
		require.NoError(t, err)
		assert.True(t, idle)
		require.NoError(t, r.DestroyEvent(0, second))
	})
}

func TestDestroyedStreamsAreForgotten(t *testing.T) {
	r := emulate(t, nil)
	s, err := r.NewStream(0)
	require.NoError(t, err)
	_, own := r.streams.contextOf(s)
	assert.True(t, own)
	require.NoError(t, r.DestroyStream(0, s))
	_, own = r.streams.contextOf(s)
	assert.False(t, own)
}
