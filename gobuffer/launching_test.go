package gobuffer_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

const bytesLaunched = 100

// byThreads has one thread for each byte.
var byThreads = backends.LaunchShape{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{32, 1, 1}}

// kernels are the two of backendtest.Kernels on a device, and their module.
type kernels struct {
	*world
	module     *gobuffer.Module
	fill, copy *gobuffer.Kernel
}

func (w *world) kernels(device int) kernels {
	w.t.Helper()
	m, err := w.runtime.NewModule("cuda", backendtest.Kernels)
	require.NoError(w.t, err)
	k := kernels{world: w, module: m}
	k.fill, err = m.Kernel(device, "conformance_fill")
	require.NoError(w.t, err)
	k.copy, err = m.Kernel(device, "conformance_copy")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { // before what assertClean looks at
		assert.NoError(w.t, m.Close())
		assert.NoError(w.t, w.runtime.ReleasePostponed())
		assert.Zero(w.t, w.cuda.LiveModules())
	})
	return k
}

func launchValue[T any](v T) gobuffer.Argument {
	at := new(T)
	*at = v
	return gobuffer.Argument{Value: unsafe.Pointer(at), Size: int(unsafe.Sizeof(v))}
}

func (k kernels) filled(a *gobuffer.Array, value byte, on backends.Stream) error {
	return k.fill.Launch(byThreads, gobuffer.LaunchStream{Stream: on},
		[]gobuffer.Argument{{Array: a}, launchValue(uint32(bytesLaunched)), launchValue(value)})
}

func (k kernels) copied(to, from *gobuffer.Array, on backends.Stream) error {
	return k.copy.Launch(byThreads, gobuffer.LaunchStream{Stream: on},
		[]gobuffer.Argument{{Array: to}, {Array: from, Reads: true}, launchValue(uint32(bytesLaunched))})
}

func (w *world) bytes(a backends.Allocator, device int, stream backends.Stream) *gobuffer.Array {
	w.t.Helper()
	made, err := w.runtime.NewArray(arrayiface.Uint8, []int{bytesLaunched},
		gobuffer.Options{Allocator: a, Device: device, Stream: stream, Transfer: gobuffer.Async})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, made.Close()) })
	return made
}

// everyByte checks what the host finds in an array, by an access that waits for whatever hamr knows of.
func (w *world) everyByte(a *gobuffer.Array, value byte) {
	w.t.Helper()
	h, err := a.Access(backends.SpaceHost, backends.HostDevice)
	require.NoError(w.t, err)
	defer func() { assert.NoError(w.t, h.Release()) }()
	for i, found := range unsafe.Slice(*(**byte)(unsafe.Pointer(new(h.Address()))), bytesLaunched) {
		require.Equal(w.t, value, found, "byte %d", i)
	}
}

// TestKernelsAreInTheOrderOfTheirArrays: whatever stream one is launched on, with nothing done before somebody waits.
func TestKernelsAreInTheOrderOfTheirArrays(t *testing.T) {
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified} {
		for _, o := range []backendtest.FakeOptions{late, {Manual: true, Strict: true, Reuses: true, LateMemory: true}, {}} {
			t.Run(fmt.Sprint(a, o.Reuses, o.Manual), func(t *testing.T) {
				w := newWorld(t, 2, o)
				k := w.kernels(1)
				var streams []backends.Stream
				for range 3 {
					s, err := w.cuda.NewStream(1)
					require.NoError(t, err)
					t.Cleanup(func() {
						assert.NoError(t, w.runtime.ForgetStream(s))
						assert.NoError(t, w.cuda.DestroyStream(1, s))
					})
					streams = append(streams, s)
				}
				first, second := w.bytes(a, 1, 0), w.bytes(a, 1, streams[0])
				for i := range 12 {
					require.NoError(t, k.filled(first, byte(i), streams[i%3]))
					require.NoError(t, k.copied(second, first, []backends.Stream{0, streams[1], streams[2], streams[0]}[i%4]))
					require.NoError(t, k.filled(first, 99, 0))
				}
				w.everyByte(second, 11)
				w.everyByte(first, 99)
				scratch := w.bytes(a, 1, 0)
				require.NoError(t, k.filled(scratch, 5, streams[2]))
				require.NoError(t, scratch.Free()) // a violation of the device's if it does not wait
				require.NoError(t, w.runtime.ReleasePostponed())
			})
		}
	}
}

// TestEachArgumentIsWaitedFor, also where they are pending on several streams.
func TestEachArgumentIsWaitedFor(t *testing.T) {
	w := newWorld(t, 1, late)
	k := w.kernels(0)
	var streams []backends.Stream
	for range 3 {
		s, err := w.cuda.NewStream(0)
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, w.runtime.ForgetStream(s))
			assert.NoError(t, w.cuda.DestroyStream(0, s))
		})
		streams = append(streams, s)
	}
	to, from := w.bytes(backends.CUDA, 0, 0), w.bytes(backends.CUDA, 0, 0)
	require.NoError(t, k.filled(to, 1, streams[0]))
	require.NoError(t, k.filled(from, 2, streams[1]))
	require.NoError(t, k.copied(to, from, streams[2]))
	w.everyByte(to, 2)
	require.NoError(t, k.filled(to, 3, streams[0]))
	require.NoError(t, k.filled(from, 4, streams[1]))
	require.NoError(t, k.copied(from, to, streams[2]))
	w.everyByte(from, 3)
}

func TestWhatKernelsAreNotGiven(t *testing.T) {
	w := newWorld(t, 2, late)
	k := w.kernels(0)
	good, other, onHost := w.bytes(backends.CUDA, 0, 0), w.bytes(backends.CUDA, 1, 0),
		w.bytes(backends.Malloc, backends.HostDevice, 0)
	fixed := gobuffer.View(good.Memory().Retain(), good.Address(), good.Layout(), bytesLaunched, true, good.Options())
	defer fixed.Close()
	closed := gobuffer.View(good.Memory().Retain(), good.Address(), good.Layout(), bytesLaunched, false, good.Options())
	require.NoError(t, closed.Close())
	stream, err := w.cuda.NewStream(1)
	require.NoError(t, err)
	defer func() { assert.NoError(t, w.cuda.DestroyStream(1, stream)) }()
	before := w.cuda.CallCount("LaunchFunction")
	count, value := launchValue(uint32(1)), launchValue(byte(1))
	shaped := func(grid, block [3]uint32, shared uint32) error {
		return k.fill.Launch(backends.LaunchShape{Grid: grid, Block: block, Shared: shared}, gobuffer.LaunchStream{},
			[]gobuffer.Argument{{Array: good}, count, value})
	}
	given := func(arguments ...gobuffer.Argument) error {
		return k.fill.Launch(byThreads, gobuffer.LaunchStream{}, arguments)
	}
	one := [3]uint32{1, 1, 1}
	for words, err := range map[string]error{
		"grid is (0, 1, 1): accepted is 1 … ":                             shaped([3]uint32{0, 1, 1}, one, 0),
		"grid is (1, 70000, 1): accepted is 1 … ":                         shaped([3]uint32{1, 70000, 1}, one, 0),
		"block is (1, 1, 65): accepted is 1 … 256, 1 … 256, 1 … 64":       shaped(one, [3]uint32{1, 1, 65}, 0),
		"block is (16, 32, 1), which is 512 threads: accepted is up to":   shaped(one, [3]uint32{16, 32, 1}, 0),
		"shared is 98305: accepted is 0 … 98304 bytes":                    shaped(one, one, backendtest.MostShared+1),
		"the number of arguments of conformance_fill is 2: accepted is 3": given(gobuffer.Argument{Array: good}, count),
		"argument 1 of conformance_fill is of 1 bytes: accepted is one of 4": given(gobuffer.Argument{Array: good}, value,
			value),
		"argument 0 of conformance_fill is of 4 bytes: accepted is one of 8": given(count, count, value),
		"argument 0 of conformance_fill is nil":                              given(gobuffer.Argument{Size: 8}, count, value),
		"argument 0 of conformance_fill is a buffer of cuda on device 1":     k.filled(other, 1, 0),
		"argument 0 of conformance_fill is a buffer of malloc in host":       k.filled(onHost, 1, 0),
		"argument 0 of conformance_fill is a read-only buffer":               k.filled(fixed, 1, 0),
		"the buffer was freed by Close":                                      k.filled(closed, 1, 0),
		"of device 1: accepted is a stream of device 0":                      k.filled(good, 1, stream),
	} {
		assert.ErrorContains(t, err, words)
	}
	assert.Equal(t, before, w.cuda.CallCount("LaunchFunction"), "nothing was launched")
	require.NoError(t, k.copied(good, fixed, 0), "what is only read may be read-only")

	h, err := good.AccessMode(backends.SpaceCUDA, 0, gobuffer.Read)
	require.NoError(t, err)
	assert.ErrorIs(t, k.filled(good, 1, 0), gobuffer.ErrInUse)
	require.NoError(t, h.Release())
	require.NoError(t, k.filled(good, 1, 0))

	_, err = k.module.Kernel(0, "none")
	assert.ErrorContains(t, err, `name is "none": accepted is a kernel of the module's`)
	_, err = k.module.Kernel(2, "conformance_fill")
	assert.ErrorContains(t, err, "device is 2")
	_, err = w.runtime.NewModule("host", backendtest.Kernels)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = w.runtime.NewModule("cuda", nil)
	assert.ErrorContains(t, err, "module is empty")
	wrong, err := w.runtime.NewModule("cuda", []byte("nothing"))
	require.NoError(t, err)
	for range 2 {
		_, err = wrong.Kernel(0, "conformance_fill")
		assert.ErrorContains(t, err, "line 1: no kernels")
	}
	require.NoError(t, wrong.Close())
}

func TestLaunchesAtOnceTakeNoSharedMemoryFromEachOther(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{})
	a := w.bytes(backends.CUDA, 0, 0)
	for range 100 {
		k, begin := w.kernels(0), make(chan struct{})
		var all sync.WaitGroup
		for i := range 12 {
			shape := byThreads
			shape.Shared = uint32(backendtest.SharedForAll + 1 + i*4000)
			all.Go(func() {
				<-begin
				assert.NoError(t, k.fill.Launch(shape, gobuffer.LaunchStream{},
					[]gobuffer.Argument{{Array: a}, launchValue(uint32(bytesLaunched)), launchValue(byte(1))}))
			})
		}
		close(begin)
		all.Wait()
		require.NoError(t, k.module.Close())
	}
}

func TestSharedMemoryIsAskedForOnce(t *testing.T) {
	w := newWorld(t, 1, late)
	k := w.kernels(0)
	a := w.bytes(backends.CUDA, 0, 0)
	shape := byThreads
	for _, step := range []struct{ shared, told int }{{backendtest.SharedForAll, 0}, {backendtest.SharedForAll + 1, 1},
		{backendtest.MostShared, 2}, {backendtest.SharedForAll + 1, 2}} {
		shape.Shared = uint32(step.shared)
		require.NoError(t, k.fill.Launch(shape, gobuffer.LaunchStream{},
			[]gobuffer.Argument{{Array: a}, launchValue(uint32(1)), launchValue(byte(1))}))
		assert.Equal(t, step.told, w.cuda.CallCount("AllowShared"))
	}
}

// TestModulesEndAfterTheirKernels, on streams that end before.
func TestModulesEndAfterTheirKernels(t *testing.T) {
	for _, mayEnd := range []bool{false, true} {
		t.Run(fmt.Sprint(mayEnd), func(t *testing.T) {
			w := newWorld(t, 1, late)
			k := w.kernels(0)
			a := w.bytes(backends.CUDA, 0, 0)
			stream, err := w.cuda.NewStream(0)
			require.NoError(t, err)
			arguments := []gobuffer.Argument{{Array: a}, launchValue(uint32(bytesLaunched)), launchValue(byte(3))}
			for range 3 {
				require.NoError(t, k.fill.Launch(byThreads, gobuffer.LaunchStream{Stream: stream, MayEnd: mayEnd}, arguments))
			}
			if !mayEnd {
				require.NoError(t, w.runtime.ForgetStream(stream))
			}
			require.NoError(t, a.Memory().Forget(stream))
			require.NoError(t, w.cuda.DestroyStream(0, stream))
			require.NoError(t, k.module.Close())
			require.NoError(t, k.module.Close())
			assert.Equal(t, 1, w.cuda.LiveModules(), "its kernels have yet to run")
			assert.ErrorIs(t, k.filled(a, 1, 0), gobuffer.ErrFreed)
			_, err = k.module.Kernel(0, "conformance_fill")
			assert.ErrorIs(t, err, gobuffer.ErrFreed)
			w.everyByte(a, 3)
			require.NoError(t, w.runtime.ReleasePostponed())
			assert.Zero(t, w.cuda.LiveModules())
		})
	}
}

// TestFailuresOfLaunchesAreTold, and lose nothing.
func TestFailuresOfLaunchesAreTold(t *testing.T) {
	w := newWorld(t, 1, late)
	k := w.kernels(0)
	a := w.bytes(backends.CUDA, 0, 0)
	stream, err := w.cuda.NewStream(0)
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, a.Synchronize())
		assert.NoError(t, a.Memory().Forget(stream))
		assert.NoError(t, w.runtime.ForgetStream(stream))
		assert.NoError(t, w.cuda.DestroyStream(0, stream))
	}()
	for _, call := range []string{"LaunchFunction", "Record", "Wait", "NewEvent"} {
		require.NoError(t, k.filled(a, 1, 0))
		w.cuda.FailAt(call, 1, errInjected)
		assert.ErrorIs(t, k.filled(a, 2, stream), errInjected, call)
		w.cuda.StopFailing()
		w.everyByte(a, 1)
		require.NoError(t, k.filled(a, 3, stream), call)
		w.everyByte(a, 3)
	}
	var nothing gobuffer.Kernel
	assert.ErrorIs(t, nothing.Launch(byThreads, gobuffer.LaunchStream{}, nil), gobuffer.ErrZero)
}

// TestCoversAndLaunched: who launches by the handle is told when nothing else is pending.
func TestCoversAndLaunched(t *testing.T) {
	w := newWorld(t, 1, late)
	k := w.kernels(0)
	a := w.bytes(backends.CUDA, 0, 0)
	assert.Zero(t, k.fill.Covers(a, 0), "nothing is recorded")
	require.NoError(t, k.filled(a, 1, 0))
	marks := k.fill.Covers(a, 0)
	assert.NotZero(t, marks)
	assert.Equal(t, a.Memory().Marks().Load(), marks)
	stream, err := w.cuda.NewStream(0)
	require.NoError(t, err)
	assert.Zero(t, k.fill.Covers(a, stream))
	require.NoError(t, k.filled(a, 1, stream))
	assert.Zero(t, k.fill.Covers(a, 0))
	assert.NotZero(t, k.fill.Covers(a, stream))
	require.NoError(t, k.fill.Launched(stream))
	w.everyByte(a, 1)
	require.NoError(t, a.Memory().Forget(stream))
	require.NoError(t, w.runtime.ForgetStream(stream))
	require.NoError(t, w.cuda.DestroyStream(0, stream))
	assert.NotZero(t, k.fill.Handle())
	assert.Equal(t, backendtest.SharedForAll, k.fill.SharedAllowed())
	assert.Equal(t, []int{8, 4, 1}, k.fill.Facts().Parameters)
}
