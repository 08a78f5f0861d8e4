package opencl

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// rig is a machine's OpenCL with memory on each device.
type rig struct {
	*Backend
	t *testing.T
}

func newRig(t *testing.T) rig {
	t.Helper()
	return rig{openWith(t, usmMemory), t}
}

func (r rig) take(device, size int) backends.Region {
	r.t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: backends.OpenCLDevice, Device: device, Size: size, Zero: true})
	require.NoError(r.t, err)
	require.NoError(r.t, r.Synchronize(device, 0))
	region := backends.Region{Address: at, Allocator: backends.OpenCLDevice, Device: device}
	r.t.Cleanup(func() { assert.NoError(r.t, r.Free(region, size, 0)) })
	return region
}

func (r rig) stream(device int) backends.Stream {
	r.t.Helper()
	s, err := r.NewStream(device)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { assert.NoError(r.t, r.DestroyStream(device, s)) })
	return s
}

func (r rig) event(device int) backends.Event {
	r.t.Helper()
	e, err := r.NewEvent(device)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { assert.NoError(r.t, r.DestroyEvent(device, e)) })
	return e
}

// hold keeps what is enqueued on a stream later from running until the result is called.
func (r rig) hold(device int, s backends.Stream) (letGo func()) {
	r.t.Helper()
	gate, err := r.made(r.library.CreateUserEvent, r.devices[device].context)
	require.NoError(r.t, err)
	adopted, err := r.AdoptEvent(device, gate)
	require.NoError(r.t, err)
	require.NoError(r.t, r.Wait(device, s, adopted))
	require.NoError(r.t, r.DestroyEvent(device, adopted))
	return func() {
		require.NoError(r.t, r.call(r.library.SetUserEventStatus, gate, complete))
		r.release(gate)
	}
}

func (r rig) read(from backends.Region, size int) []byte {
	r.t.Helper()
	data := dl.OnHeap([64]byte{})
	here := backends.Region{Address: backends.Address(unsafe.Pointer(data)), Allocator: backends.Malloc,
		Device: backends.HostDevice}
	_, err := r.Copy(here, from, size, 0)
	require.NoError(r.t, err)
	require.NoError(r.t, r.Synchronize(from.Device, 0))
	return data[:size]
}

// TestWaitForWorkThatIsNotOver has each device wait for each, in the same context and in others,
// for what is held up until it has been asked.
func TestWaitForWorkThatIsNotOver(t *testing.T) {
	r := newRig(t)
	for from := range r.devices {
		for to := range r.devices {
			region := r.take(to, 4)
			producer, consumer, event := r.stream(from), r.stream(to), r.event(from)
			letGo := r.hold(from, producer)
			require.NoError(t, r.Record(from, event, producer))
			require.NoError(t, r.Wait(to, consumer, event))
			require.NoError(t, r.Fill(region, []byte{7}, 4, consumer))
			for _, s := range []backends.Stream{producer, consumer} {
				device := from
				if s == consumer {
					device = to
				}
				idle, err := r.Idle(device, s)
				require.NoError(t, err)
				assert.False(t, idle)
			}
			done, err := r.Done(from, event)
			require.NoError(t, err)
			assert.False(t, done)
			assert.Equal(t, []byte{0, 0, 0, 0}, r.read(region, 4), "from %d to %d", from, to)
			letGo()
			require.NoError(t, r.Synchronize(to, consumer))
			require.NoError(t, r.SynchronizeEvent(from, event))
			assert.Equal(t, []byte{7, 7, 7, 7}, r.read(region, 4), "from %d to %d", from, to)
		}
	}
}

// TestQueuesOfOthers gives the backend queues that keep no order, and of another context.
func TestQueuesOfOthers(t *testing.T) {
	r := newRig(t)
	for number, d := range r.devices {
		_, err := r.device("", number)
		require.NoError(t, err)
		queue, err := r.made(r.library.CreateCommandQueue, d.context, d.handle, queueOutOfOrder)
		require.NoError(t, err)
		s := backends.Stream(queue)
		found, err := r.StreamDevice(s)
		require.NoError(t, err)
		assert.Equal(t, number, found)
		a, b := r.take(number, 60), r.take(number, 60)
		for i := range 50 {
			require.NoError(t, r.Fill(a, []byte{byte(i)}, 60, s))
			_, err = r.Copy(b, a, 60, s)
			require.NoError(t, err)
			require.NoError(t, r.Fill(a, []byte{1, 2, 3}, 20, s))
		}
		require.NoError(t, r.Synchronize(number, s))
		assert.EqualValues(t, 49, r.read(b, 60)[59])
		assert.EqualValues(t, 3, r.read(a, 60)[59])
		event := r.event(number)
		require.NoError(t, r.Record(number, event, s))
		require.NoError(t, r.SynchronizeEvent(number, event))
		r.queues.Forget(s)
		require.NoError(t, r.call(r.library.ReleaseCommandQueue, queue))

		other := &device{number: number, platform: d.platform, handle: d.handle}
		require.NoError(t, r.open(other))
		foreign := other.queue.Stream
		r.queues.Forget(foreign)
		_, err = r.StreamDevice(foreign)
		var failed *backends.DeviceError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "CL_INVALID_CONTEXT", failed.Name)
		assert.ErrorAs(t, r.Fill(a, []byte{1}, 1, foreign), &failed)
	}
}

func TestNumbersThatAreNoQueues(t *testing.T) {
	r := newRig(t)
	something := dl.OnHeap([64]byte{1, 2, 3})
	for _, s := range []backends.Stream{1, 2, 4095, 1 << 52, backends.Stream(unsafe.Pointer(something)),
		^backends.Stream(0) - 6} {
		_, err := r.StreamDevice(s)
		assert.ErrorIs(t, err, backends.ErrNoStream, "%#x", s)
	}
	found, err := r.StreamDevice(0)
	require.NoError(t, err)
	assert.Equal(t, backends.HostDevice, found)
}

// On a queue that keeps no order everything is looked through at each barrier.
func TestNoMoreThanSoMuchPilesUpOutOfOrder(t *testing.T) {
	r := newRig(t)
	for number := range r.devices {
		if r.devices[number].memory == noMemory {
			continue
		}
		d, err := r.device("", number)
		require.NoError(t, err)
		queue, err := r.made(r.library.CreateCommandQueue, d.context, d.handle, queueOutOfOrder)
		require.NoError(t, err)
		s := backends.Stream(queue)
		to, from := r.take(number, 800), r.take(number, 800)
		require.NoError(t, r.Fill(from, []byte{7}, 800, s))
		for i := range backends.Address(800) {
			one, other := to, from
			one.Address += i
			other.Address += i
			_, err := r.Copy(one, other, 1, s)
			require.NoError(t, err)
		}
		q, _, err := r.queueOn("", number, s)
		require.NoError(t, err)
		assert.LessOrEqual(t, q.Unfinished(), mostUnfinished)
		require.NoError(t, r.Synchronize(number, s))
		assert.Equal(t, byte(7), r.read(backends.Region{Address: to.Address + 799, Allocator: to.Allocator, Device: number},
			1)[0])
		require.NoError(t, r.call(r.library.ReleaseCommandQueue, queue))
	}
}
