package backendtest

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// launch runs one of Kernels, with a thread for each of count bytes and some that are too many.
func launch(t *testing.T, l backends.Launcher, device int, stream backends.Stream, f backends.Function, count uint32,
	values ...unsafe.Pointer) {
	t.Helper()
	shape := backends.LaunchShape{Grid: [3]uint32{count/128 + 1, 1, 1}, Block: [3]uint32{128, 1, 1}}
	var pinned runtime.Pinner
	defer pinned.Unpin()
	for _, v := range values {
		pinned.Pin(v)
	}
	list := &values[0]
	pinned.Pin(list)
	require.NoError(t, l.LaunchFunction(device, stream, f, shape, unsafe.Pointer(list)))
}

func (s suite) testKernels(t *testing.T) {
	l, ok := backends.As[backends.Launcher](s.b)
	if !ok || s.a.Kind() != backends.DeviceOnly {
		return
	}
	_, err := l.LoadModule(s.device, []byte("no module of kernels"))
	var failed *backends.DeviceError
	require.ErrorAs(t, err, &failed)

	module, err := l.LoadModule(s.device, Kernels)
	require.NoError(t, err)
	_, err = l.Function(s.device, module, "no_such_kernel")
	require.ErrorIs(t, err, backends.ErrNoFunction)
	_, err = l.Function(s.device, module, "conformance_fill\x00")
	require.ErrorIs(t, err, backends.ErrNoFunction)
	fill, err := l.Function(s.device, module, "conformance_fill")
	require.NoError(t, err)
	copies, err := l.Function(s.device, module, "conformance_copy")
	require.NoError(t, err)

	facts, err := l.FunctionFacts(s.device, fill)
	require.NoError(t, err)
	if facts.KnowsParameters {
		assert.Equal(t, []int{8, 4, 1}, facts.Parameters)
	}
	assert.GreaterOrEqual(t, facts.Threads, 128)
	assert.GreaterOrEqual(t, facts.MostShared, facts.Shared)
	assert.GreaterOrEqual(t, facts.MostBlock[0], uint32(128))
	assert.GreaterOrEqual(t, facts.MostGrid[0], uint32(1000))
	if facts.MostShared > facts.Shared {
		require.NoError(t, l.AllowShared(s.device, fill, facts.MostShared))
		facts, err = l.FunctionFacts(s.device, fill)
		require.NoError(t, err)
		assert.Equal(t, facts.MostShared, facts.Shared)
	}

	stream, count, value := s.newStream(t), new(uint32), new(byte)
	captured, err := l.Capturing(s.device, stream)
	require.NoError(t, err)
	assert.False(t, captured)
	const size = 1000
	first, second := s.allocate(t, size, true, stream), s.allocate(t, size, true, stream)
	a, b := new(backends.Address), new(backends.Address)
	*a, *b = first.Address, second.Address
	*count, *value = 700, 0x5A
	launch(t, l, s.device, stream, fill, size, unsafe.Pointer(a), unsafe.Pointer(count), unsafe.Pointer(value))
	*count, *value = size, 0 // what was given has been read
	launch(t, l, s.device, stream, copies, size, unsafe.Pointer(b), unsafe.Pointer(a), unsafe.Pointer(count))
	*a, *b = 0, 0
	s.wait(t, stream)
	want := append(bytes.Repeat([]byte{0x5A}, 700), make([]byte, 300)...)
	equal(t, want, s.read(t, second, size, stream), "what a kernel has copied")
	require.NoError(t, l.UnloadModule(s.device, module))
}
