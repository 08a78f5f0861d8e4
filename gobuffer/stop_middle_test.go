package gobuffer_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// stoppedCopier is a fake device whose copies with ordinary host memory are stopped in the middle: the
// device still reads or writes its own memory, of which chunks have the rest.
type stoppedCopier struct {
	*backendtest.Fake
	chunk backends.Region
}

func (s *stoppedCopier) CopyUntil(_ *backends.Stop, dst, src backends.Region, size int,
	stream backends.Stream) (backends.Progress, error) {
	if src.Allocator.Kind() == backends.Pageable {
		src = s.chunk
	} else {
		dst = s.chunk
	}
	if _, err := s.Copy(dst, src, size, stream); err != nil {
		return backends.Complete, err
	}
	return backends.Complete, backends.ErrStopped
}

// TestMemoryOfAStoppedCopyIsWaitedFor when it is given back: else the fake tells of work that has yet
// to run on freed memory.
func TestMemoryOfAStoppedCopyIsWaitedFor(t *testing.T) {
	for name, act := range map[string]func(a, b *gobuffer.Array, stop *backends.Stop) error{
		"down": func(a, b *gobuffer.Array, _ *backends.Stop) error { return b.Write(a) },
		"up":   func(a, b *gobuffer.Array, _ *backends.Stop) error { return a.Write(b) },
		"read": func(a, _ *gobuffer.Array, stop *backends.Stop) error {
			target := make([]byte, a.Layout().NBytes())
			return a.Memory().ReadUntil(stop, backends.Address(uintptr(unsafe.Pointer(&target[0]))), a.Address(), len(target), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			device := &stoppedCopier{Fake: backendtest.NewFake(backendtest.FakeOptions{Manual: true, Strict: true})}
			runtime, err := gobuffer.NewRuntime(host.New(), device)
			require.NoError(t, err)
			w := &world{t: t, runtime: runtime, cuda: device.Fake, devices: []backendtest.Device{device.Fake}}
			chunk := w.array(place{backends.CUDAHost, -1}.options(gobuffer.Sync), before)
			device.chunk = chunk.Memory().Region()
			a, b := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), after),
				w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
			require.NoError(t, a.Synchronize())
			stop := new(backends.Stop)
			require.ErrorIs(t, act(a.Until(stop), b, stop), backends.ErrStopped)
			_, busy := a.Memory().Busy()
			assert.True(t, busy, "the device still uses it")
			_, busy = b.Memory().Busy()
			assert.False(t, busy, "nobody uses ordinary host memory any more")
			closeAll(t, a, b)
			require.NoError(t, device.SynchronizeDevice(0))
			closeAll(t, chunk)
			device.AssertClean(t)
		})
	}
}

// askingCopier is a fake device that is asked to stop as soon as it has enqueued many copies.
type askingCopier struct {
	*backendtest.Fake
	stop *backends.Stop
}

func (a *askingCopier) CopyBatch(copies []backends.BatchCopy, s backends.Stream) (backends.Progress, error) {
	defer a.stop.Ask()
	return a.Fake.CopyBatch(copies, s)
}

// TestOrdinaryMemoryIsNotWrittenAfterAStop: what a runtime has begun to write there cannot be stopped.
func TestOrdinaryMemoryIsNotWrittenAfterAStop(t *testing.T) {
	for name, act := range map[string]func(w *world, to, from []*gobuffer.Array) error{
		"many": func(_ *world, to, from []*gobuffer.Array) error { return gobuffer.CopyMany(to, from) },
		"blocks": func(w *world, to, from []*gobuffer.Array) error {
			i := w.indices(place{backends.Malloc, -1}, arrayiface.Int64, []int{0, 2, 4})
			return errors.Join(gobuffer.CopyBlocks(to, i, from, i), i.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			device := &askingCopier{backendtest.NewFake(backendtest.FakeOptions{Manual: true, Strict: true, NoBlocks: true}),
				new(backends.Stop)}
			runtime, err := gobuffer.NewRuntime(host.New(), device)
			require.NoError(t, err)
			w := &world{t: t, runtime: runtime, cuda: device.Fake, devices: []backendtest.Device{device.Fake}}
			from := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), after)
			to := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
			also := w.array(place{backends.Malloc, -1}.options(gobuffer.Async), before)
			require.NoError(t, from.Synchronize())
			stopped := act(w, []*gobuffer.Array{to.Until(device.stop), also.Until(device.stop)},
				[]*gobuffer.Array{from, from})
			found := [][]byte{w.peek(to.Memory()), w.peek(also.Memory())}
			require.NoError(t, device.SynchronizeDevice(0))
			assert.Equal(t, found, [][]byte{w.peek(to.Memory()), w.peek(also.Memory())}, "written after the return: %v", stopped)
			closeAll(t, to, also, from)
			device.AssertClean(t)
		})
	}
}
