package opencl

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// TestOnePointerServesBothDevices finds that what the host may use is sent without a stop there.
func TestOnePointerServesBothDevices(t *testing.T) {
	r := newRig(t)
	for from, d := range r.devices {
		for to := range r.devices {
			for _, a := range []backends.Allocator{backends.OpenCLDevice, backends.OpenCLSVM} {
				at, err := r.Allocate(backends.Request{Allocator: a, Device: from, Size: 8, Zero: true})
				require.NoError(t, err)
				require.NoError(t, r.Synchronize(from, 0))
				source := backends.Region{Address: at, Allocator: a, Device: from}
				left, err := r.Copy(r.take(to, 8), source, 8, 0)
				require.NoError(t, err)
				assert.Equal(t, from == to || d.onHost(a), left != backends.Complete)
				require.NoError(t, r.Synchronize(to, 0))
				require.NoError(t, r.Free(source, 8, 0))
			}
		}
	}
}

// TestOrderOnAQueueWithout has somebody else's copy held up on a queue that keeps no order: what
// the backend enqueues comes after it all the same, and before the next.
func TestOrderOnAQueueWithout(t *testing.T) {
	r := newRig(t)
	for number, d := range r.devices {
		_, err := r.device("", number)
		require.NoError(t, err)
		queue, err := r.made(r.library.CreateCommandQueue, d.context, d.handle, queueOutOfOrder)
		require.NoError(t, err)
		target, source := r.take(number, 8), r.take(number, 8)
		require.NoError(t, r.Fill(source, []byte{1}, 8, 0))
		require.NoError(t, r.Synchronize(number, 0))
		gate, err := r.made(r.library.CreateUserEvent, d.context)
		require.NoError(t, err)
		list := &[1]uintptr{gate}
		function := r.library.EnqueueSVMCopy
		if d.memory == usmMemory {
			function = d.usm.EnqueueCopy
		}
		require.NoError(t, r.enqueue(d, function, queue, 0, uintptr(target.Address), uintptr(source.Address), 8, 1,
			uintptr(unsafe.Pointer(list)), 0))
		require.NoError(t, r.Fill(target, []byte{2}, 8, backends.Stream(queue)))
		time.Sleep(20 * time.Millisecond) // in which a fill without a barrier is done
		require.NoError(t, r.call(r.library.SetUserEventStatus, gate, complete))
		require.NoError(t, r.Synchronize(number, backends.Stream(queue)))
		assert.Equal(t, []byte{2, 2, 2, 2, 2, 2, 2, 2}, r.read(target, 8))
		r.release(gate)
		r.queues.Forget(backends.Stream(queue))
		require.NoError(t, r.call(r.library.ReleaseCommandQueue, queue))
	}
}

// TestABackendThatNobodyHas leaves a fill behind it that has read a pattern from Go's memory.
func TestABackendThatNobodyHas(t *testing.T) {
	func() {
		b := openWith(t, usmMemory)
		request := backends.Request{Allocator: backends.OpenCLDevice, Size: 30}
		at, err := b.Allocate(request)
		require.NoError(t, err)
		region := backends.Region{Address: at, Allocator: request.Allocator}
		require.NoError(t, b.Fill(region, []byte{1, 2, 3}, 10, 0))
		require.NoError(t, b.Synchronize(0, 0))
		require.NoError(t, b.Free(region, 30, 0))
	}()
	for range 3 {
		runtime.GC() // which finds what is pinned still
	}
	sources.sweep()
	assert.Empty(t, sources.list)
}
