package gobuffer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// mappedWorld has devices whose memory the host must map.
func mappedWorld(t testing.TB) *world {
	return newWorld(t, 2, backendtest.FakeOptions{Manual: true, Strict: true, NoConvert: true, Mapped: true})
}

func hostHandle(t *testing.T, a *gobuffer.Array) *gobuffer.Handle {
	t.Helper()
	h, err := a.Access(backends.SpaceHost, backends.HostDevice)
	require.NoError(t, err)
	return h
}

func int32At(h *gobuffer.Handle, i int) *int32 {
	at := h.Address() + backends.Address(elementOffset(h.Layout(), i))
	return (*int32)(pointer(at))
}

func TestTheHostMapsMemoryForAHandle(t *testing.T) {
	for _, at := range []place{{backends.CUDA, 1}, {backends.CUDAAsync, 0}, {backends.HIP, 0}} {
		w := mappedWorld(t)
		a := w.array(at.options(gobuffer.Async), counting(arrayiface.Int32, 6))
		part, err := a.Slice(0, 5, -1, -2)
		require.NoError(t, err)
		first, second := hostHandle(t, a), hostHandle(t, part)
		for _, h := range []*gobuffer.Handle{first, second} {
			assert.False(t, h.Temporary())
			assert.True(t, h.Memory().Mapped())
			assert.Zero(t, h.Stream())
		}
		assert.Same(t, first.Memory(), second.Memory(), "it is mapped once")
		assert.False(t, a.Memory().Mapped())
		assert.Equal(t, first.Address()+20, second.Address())
		*int32At(second, 1) = 40
		assert.EqualValues(t, 40, *int32At(first, 3))
		require.NoError(t, first.Release())
		closeAll(t, a, part)
		assert.EqualValues(t, 6, *int32At(second, 0), "a handle keeps the memory, and keeps it mapped")
		require.NoError(t, second.Release())
		require.NoError(t, second.Release())
	}
}

func TestWhatTheHostWritesIsTheDevicesAfterwards(t *testing.T) {
	w := mappedWorld(t)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 3))
	h := hostHandle(t, a)
	*int32At(h, 1) = 77
	require.NoError(t, h.Release())
	device, err := a.Access(backends.SpaceCUDA, 0)
	require.NoError(t, err)
	var seen byte
	require.NoError(t, w.cuda.Launch(0, device.Stream(), func(memory func(backends.Address, int) []byte) {
		seen = memory(a.Address()+4, 1)[0]
	}))
	require.NoError(t, w.cuda.Synchronize(0, 0))
	assert.EqualValues(t, 77, seen)
	require.NoError(t, device.Release())
	closeAll(t, a)
}

func TestOperationsOnMappedMemoryAreTheHosts(t *testing.T) {
	w := mappedWorld(t)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	a, other := w.array(o, counting(arrayiface.Int32, 4)), w.array(o, counting(arrayiface.Int32, 4))
	h := hostHandle(t, a)
	fills, copies := w.cuda.CallCount("Fill"), w.cuda.CallCount("Copy")
	w.setSeven(a)
	assert.EqualValues(t, 7, *int32At(h, 3), "at once")
	*int32At(h, 0) = 5
	text, err := a.Text(0)
	require.NoError(t, err)
	assert.Equal(t, "{5, 7, 7, 7}", text)
	every, err := a.Slice(0, 0, 4, 2)
	require.NoError(t, err)
	require.NoError(t, every.Fill(temporaryValue(w, 9)))
	assert.EqualValues(t, 9, *int32At(h, 2))
	assert.Equal(t, fills, w.cuda.CallCount("Fill"))
	assert.Equal(t, copies, w.cuda.CallCount("Copy"))

	require.NoError(t, other.Assign(a))
	assert.Greater(t, w.cuda.CallCount("Copy"), copies, "the other is the device's")
	w.assertHolds(other, model{arrayiface.Int32, []int{4}, []byte{9, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0}})
	one := temporaryValue(w, 0)
	require.NoError(t, a.Memory().Read(one.Address(), a.Address()+4, 4, 0))
	w.assertHoldsText(one, "{7}")
	require.NoError(t, a.Append(a))
	assert.NotSame(t, h.Memory(), a.Memory(), "growth takes new memory, which nobody has mapped")
	require.NoError(t, h.Release())
	closeAll(t, a, other, every)
}

// temporaryValue is a single value that the test's end gives back.
func temporaryValue(w *world, v int) *gobuffer.Array {
	one := w.scalar(arrayiface.Int32, v)
	w.t.Cleanup(func() { closeAll(w.t, one) })
	return one
}

func TestADeviceIsRefusedMappedMemory(t *testing.T) {
	w := mappedWorld(t)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 4))
	h := hostHandle(t, a)
	_, err := a.Access(backends.SpaceCUDA, 0)
	assert.ErrorIs(t, err, gobuffer.ErrMapped)
	assert.ErrorIs(t, a.Before(0), gobuffer.ErrMapped)
	elsewhere, err := a.Access(backends.SpaceCUDA, 1)
	require.NoError(t, err, "a copy on another device is none of it")
	require.NoError(t, elsewhere.Release())
	require.NoError(t, h.Release())
	assert.NoError(t, a.Before(0))
	closeAll(t, a)
}

func TestReadOnlyElementsAreMappedForReading(t *testing.T) {
	w := mappedWorld(t)
	o := place{backends.CUDA, 0}.options(gobuffer.Async)
	a := w.array(o, counting(arrayiface.Int32, 4))
	fixed := gobuffer.View(a.Memory().Retain(), a.Address(), a.Layout(), 4, true, o)
	h := hostHandle(t, fixed)
	assert.True(t, h.ReadOnly())
	assert.EqualValues(t, 2, *int32At(h, 1))
	w.assertHoldsText(a, "{1, 2, 3, 4}")
	assert.ErrorContains(t, a.Fill(temporaryValue(w, 1)), "mapped for a handle of read-only elements")
	_, err := a.Access(backends.SpaceHost, -1)
	assert.ErrorContains(t, err, "mapped for a handle of read-only elements")
	require.NoError(t, h.Release())
	require.NoError(t, a.Fill(temporaryValue(w, 1)))
	w.assertHoldsText(a, "{1, 1, 1, 1}")
	closeAll(t, a, fixed)
}

func (w *world) assertHoldsText(a *gobuffer.Array, want string) {
	w.t.Helper()
	text, err := a.Text(0)
	require.NoError(w.t, err)
	assert.Equal(w.t, want, text)
}

func TestUnmappingWaitsForWhatReadsTheHostsView(t *testing.T) {
	w := mappedWorld(t)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 4))
	o := place{backends.HIP, 0}.options(gobuffer.Async)
	o.Stream = w.stream(w.hip, 0)
	h := hostHandle(t, a)
	far, err := a.Copy(o, arrayiface.Int32)
	require.NoError(t, err)
	require.NoError(t, h.Release())
	w.setSeven(a)
	w.assertHoldsText(far, "{1, 2, 3, 4}")
	h = hostHandle(t, a)
	again, err := a.Copy(o, arrayiface.Int32)
	require.NoError(t, err)
	require.NoError(t, a.Synchronize())
	*int32At(h, 0) = 1
	w.assertHoldsText(again, "{7, 7, 7, 7}")
	require.NoError(t, h.Release())
	closeAll(t, a, far, again)
}

func TestMappingThatFails(t *testing.T) {
	w := mappedWorld(t)
	boom := errors.New("boom")
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 4))
	w.cuda.FailAt("Map", 1, boom)
	_, err := a.Access(backends.SpaceHost, -1)
	require.ErrorIs(t, err, boom)
	h := hostHandle(t, a)
	w.cuda.FailAt("Unmap", 1, boom)
	require.ErrorIs(t, h.Release(), boom)
	w.setSeven(a) // it was unmapped all the same
	w.assertHoldsText(a, "{7, 7, 7, 7}")
	closeAll(t, a)
}

func TestMappingBesideOtherWorkOnTheSameMemory(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{Strict: true, NoConvert: true, Mapped: true,
		MaxDelay: 20 * time.Microsecond})
	const workers, each = 4, 8
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, workers*each))
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			part, err := a.Slice(0, worker*each, (worker+1)*each, 1)
			require.NoError(t, err)
			defer part.Close()
			for round := range 100 {
				value := worker*1000 + round
				if rand.IntN(2) == 0 {
					h, err := part.Access(backends.SpaceHost, -1)
					if !assert.NoError(t, err) {
						return
					}
					for i := range each {
						*int32At(h, i) = int32(value)
					}
					assert.NoError(t, h.Release())
				} else {
					one := w.scalar(arrayiface.Int32, value%100)
					assert.NoError(t, part.Fill(one))
					value %= 100
					assert.NoError(t, one.Close())
				}
				text, err := part.Text(1)
				assert.NoError(t, err)
				assert.Contains(t, text, fmt.Sprint(value))
			}
		})
	}
	group.Wait()
	closeAll(t, a)
}

// heldUp is a device whose fills stop until they are let go on.
type heldUp struct {
	*backendtest.Fake
	stopped, goOn chan struct{}
}

func (d heldUp) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	d.stopped <- struct{}{}
	<-d.goOn
	return d.Fake.Fill(dst, pattern, count, s)
}

func TestMappingWaitsForWhoIsAboutToEnqueue(t *testing.T) {
	d := heldUp{backendtest.NewFake(backendtest.FakeOptions{Manual: true, Mapped: true}), make(chan struct{}),
		make(chan struct{})}
	r, err := gobuffer.NewRuntime(host.New(), d)
	require.NoError(t, err)
	w := &world{t: t, runtime: r, cuda: d.Fake, devices: []backendtest.Device{d.Fake}}
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 4))
	filled, mapped := make(chan error), make(chan *gobuffer.Handle)
	go func() { filled <- a.Fill(w.scalar(arrayiface.Int32, 7)) }()
	<-d.stopped
	go func() {
		h, err := a.Access(backends.SpaceHost, -1)
		assert.NoError(t, err)
		mapped <- h
	}()
	var h *gobuffer.Handle
	select {
	case h = <-mapped:
		t.Error("it was mapped under a fill that had begun")
	case <-time.After(20 * time.Millisecond):
	}
	d.goOn <- struct{}{}
	require.NoError(t, <-filled)
	if h == nil {
		h = <-mapped
	}
	assert.EqualValues(t, 7, *int32At(h, 3))
	require.NoError(t, h.Release())
	closeAll(t, a)
	d.AssertClean(t)
}

func TestNativeHandleOfMemoryWithAddresses(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.array(place{backends.CUDA, 0}.options(gobuffer.Async), counting(arrayiface.Int32, 4))
	handle, offset, err := a.Memory().NativeHandle(a.Address() + 8)
	require.NoError(t, err)
	assert.Equal(t, uintptr(a.Address()), handle)
	assert.Equal(t, 8, offset)
	closeAll(t, a)
}
