package sycl

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// rig is a machine's SYCL with memory on each device.
type rig struct {
	*Backend
	*extra
	t *testing.T
}

func newRig(t *testing.T) rig {
	t.Helper()
	b, more := found(t)
	return rig{b, more, t}
}

func (r rig) take(device, size int) backends.Region {
	r.t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: backends.SYCLDevice, Device: device, Size: size, Zero: true})
	require.NoError(r.t, err)
	require.NoError(r.t, r.Synchronize(device, 0))
	region := backends.Region{Address: at, Allocator: backends.SYCLDevice, Device: device}
	r.t.Cleanup(func() { assert.NoError(r.t, r.Free(region, size, 0)) })
	return region
}

// theirs makes a queue as another library does.
func (r rig) theirs(context uintptr, properties uintptr) backends.Stream {
	r.t.Helper()
	queue, err := r.made(r.library.CreateQueue, context, r.devices[0].handle, handler(), properties)
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		r.queues.Forget(backends.Stream(queue))
		dl.Call(r.library.DeleteQueue, queue)
	})
	return backends.Stream(queue)
}

// busy returns the event of work that takes a while, the longer the more turns.
func (r rig) busy(turns int) uintptr {
	r.t.Helper()
	const size = 16 << 20
	a, b := r.take(0, size), r.take(0, size)
	s, err := r.NewStream(0)
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		assert.NoError(r.t, r.Synchronize(0, s))
		assert.NoError(r.t, r.DestroyStream(0, s))
	})
	for range turns {
		_, err := r.Copy(a, b, size, s)
		require.NoError(r.t, err)
	}
	event, err := r.made(r.library.Barrier, uintptr(s))
	require.NoError(r.t, err)
	r.t.Cleanup(func() { r.release(event) })
	return event
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

// TestOrderOnAQueueWithout has somebody else's copy held up on a queue that keeps no order: what
// the backend enqueues comes after it all the same.
func TestOrderOnAQueueWithout(t *testing.T) {
	for turns := 8; ; turns *= 2 {
		require.Less(t, turns, 1<<12, "work that takes a while")
		r := newRig(t)
		_, err := r.device("", 0)
		require.NoError(t, err)
		s := r.theirs(r.devices[0].context, 0)
		target, source := r.take(0, 8), r.take(0, 8)
		require.NoError(t, r.Fill(source, []byte{1}, 8, 0))
		require.NoError(t, r.Synchronize(0, 0))
		gate := r.busy(turns)
		list := dl.OnHeap([1]uintptr{gate})
		copying := r.symbol("DPCTLQueue_MemcpyWithEvents")
		require.NoError(t, r.enqueue(copying, uintptr(s), uintptr(target.Address), uintptr(source.Address), 8,
			uintptr(unsafe.Pointer(list)), 1))
		require.NoError(t, r.Fill(target, []byte{2}, 8, s))
		event, err := r.NewEvent(0)
		require.NoError(t, err)
		require.NoError(t, r.Record(0, event, s))
		held := !r.over(gate)
		require.NoError(t, r.SynchronizeEvent(0, event))
		assert.True(t, r.over(gate), "an event stands for others' work, too")
		assert.Eventually(t, func() bool { // a marker may take longer than Idle waits on a busy machine
			idle, err := r.Idle(0, s)
			return assert.NoError(t, err) && idle
		}, 20*time.Second, time.Millisecond)
		assert.Equal(t, []byte{2, 2, 2, 2, 2, 2, 2, 2}, r.read(target, 8))
		require.NoError(t, r.DestroyEvent(0, event))
		if held {
			break
		}
	}
}

func (r rig) symbol(name string) uintptr {
	library, err := dl.OpenWith(dl.System, r.names(), "")
	require.NoError(r.t, err)
	at, err := library.Symbol(name)
	require.NoError(r.t, err)
	return at
}

// TestQueuesOfOthers gives the backend queues that keep no order or no times, a second reference to one of
// its own, and queues of another context and of a part of a device.
func TestQueuesOfOthers(t *testing.T) {
	r := newRig(t)
	d, err := r.device("", 0)
	require.NoError(t, err)
	twin := backends.Stream(dl.Call(r.CopyQueue, d.queue.Handle()))
	t.Cleanup(func() { dl.Call(r.library.DeleteQueue, uintptr(twin)) })
	for _, s := range []backends.Stream{twin, r.theirs(d.context, 0), r.theirs(d.context, queueInOrder)} {
		number, err := r.StreamDevice(s)
		require.NoError(t, err)
		assert.Equal(t, 0, number)
		a, b := r.take(0, 60), r.take(0, 60)
		for i := range 50 {
			require.NoError(t, r.Fill(a, []byte{byte(i)}, 60, s))
			_, err = r.Copy(b, a, 60, s)
			require.NoError(t, err)
			require.NoError(t, r.Fill(a, []byte{1, 2, 3}, 20, s))
		}
		require.NoError(t, r.Synchronize(0, s))
		assert.EqualValues(t, 49, r.read(b, 60)[59])
		assert.EqualValues(t, 3, r.read(a, 60)[59])
		if s == twin {
			continue
		}
		from, err := r.NewTimedEvent(0)
		require.NoError(t, err)
		require.NoError(t, r.Record(0, from, s))
		require.NoError(t, r.SynchronizeEvent(0, from))
		_, err = r.Elapsed(0, from, from)
		require.ErrorIs(t, err, backends.ErrUntimed)
		require.NoError(t, r.DestroyEvent(0, from))
	}

	context, err := r.made(r.library.CreateContext, d.handle, handler(), 0)
	require.NoError(t, err)
	defer dl.Call(r.library.DeleteContext, context)
	foreign := r.theirs(context, 0)
	_, err = r.StreamDevice(foreign)
	var failed *backends.DeviceError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "errc::invalid", failed.Name)
	assert.Contains(t, failed.Message, "of another context than memory of hamr's on device 0")
	assert.ErrorAs(t, r.Fill(r.take(0, 8), []byte{1}, 1, foreign), &failed)

	parts := inParts(t)
	p, err := parts.device("", 1)
	require.NoError(t, err)
	_, err = r.StreamDevice(p.queue.Stream)
	assert.ErrorContains(t, err, "of a device that hamr does not know")
	assert.ErrorContains(t, parts.Fill(r.take(0, 8), []byte{1}, 1, p.queue.Stream), "is of device 1, and the memory of 0")
}

func TestNumbersThatAreNoQueues(t *testing.T) {
	r := newRig(t)
	something, leading := dl.OnHeap([64]byte{1, 2, 3}), dl.OnHeap([2]uintptr{})
	leading[1] = uintptr(unsafe.Pointer(something))
	for _, s := range []backends.Stream{1, 2, 4095, 1 << 52, backends.Stream(unsafe.Pointer(something)),
		backends.Stream(unsafe.Pointer(leading)), ^backends.Stream(0) - 6} {
		_, err := r.StreamDevice(s)
		assert.ErrorIs(t, err, backends.ErrNoStream, "%#x", s)
	}
	number, err := r.StreamDevice(0)
	require.NoError(t, err)
	assert.Equal(t, backends.HostDevice, number)
}

// TestLateFailures is told of what SYCL says to the handler: whoever waits next has it, once.
func TestLateFailures(t *testing.T) {
	r := newRig(t)
	dl.Call(handler(), 9)
	dl.Call(handler(), 8)
	err := r.Synchronize(0, 0)
	assert.ErrorContains(t, err, "sycl: DPCTLEvent_WaitAndThrow failed with errc::memory_allocation (9)")
	require.NoError(t, r.Synchronize(0, 0))
	dl.Call(handler(), 0)
	assert.ErrorContains(t, r.Synchronize(0, 0), "errc::runtime")
}

// TestWhatTheHostReachesGoesWithoutAStop is of parts of a device, whose contexts share nothing.
func TestWhatTheHostReachesGoesWithoutAStop(t *testing.T) {
	b := inParts(t)
	r := rig{b, nil, t}
	for from := range r.devices {
		for to := range r.devices {
			for a := range aspects {
				at, err := r.Allocate(backends.Request{Allocator: a, Device: from, Size: 8})
				require.NoError(t, err)
				source := backends.Region{Address: at, Allocator: a, Device: from}
				require.NoError(t, r.Fill(source, []byte{byte(7 + to)}, 8, 0))
				require.NoError(t, r.Synchronize(from, 0))
				target := r.take(to, 8)
				left, err := r.Copy(target, source, 8, 0)
				require.NoError(t, err)
				assert.Equal(t, from == to || onHost(a), left != backends.Complete)
				assert.EqualValues(t, 7+to, r.read(target, 8)[7])
				require.NoError(t, r.Free(source, 8, 0))
			}
		}
	}
}
