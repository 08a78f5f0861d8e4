package hetero_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

// Buffers of a context are where it is, and whatever is done to them is in its stream's order.
func TestBuffersOfAContext(t *testing.T) {
	for place, want := range map[string][2]backends.Allocator{
		"cuda:1": {backends.CUDAAsync, backends.CUDAHost},
		"hip:1":  {backends.HIP, backends.HIPHost},
	} {
		o := late
		o.LateMemory = true
		w := newWorld(t, 2, o)
		ctx := w.begin(places(t, place)[0])
		host, device := ctx.HostOptions(), ctx.Options()
		assert.Equal(t, want, [2]backends.Allocator{device.Allocator, host.Allocator})
		assert.Equal(t, [2]int{1, backends.HostDevice}, [2]int{device.Device, host.Device})
		assert.Equal(t, [2]backends.Stream{ctx.Stream(), ctx.Stream()}, [2]backends.Stream{device.Stream, host.Stream})

		seven := uint16(7)
		raw, err := w.runtime.NewFilledArray(gobuffer.TypeOf[uint16](), []int{4}, host,
			gobuffer.Value{Type: gobuffer.TypeOf[uint16](), Pointer: unsafe.Pointer(&seven)})
		require.NoError(t, err)
		copied, err := raw.Copy(device, gobuffer.TypeOf[uint16]())
		require.NoError(t, err)
		p := wrap(w, ctx, copied)
		require.NoError(t, ctx.End())
		w.assertNeverBlocked()

		// A consumer on another stream finds the elements.
		first, second := w.beginFrom(p), w.beginFrom(p)
		in, err := hetero.Get(second, p)
		require.NoError(t, err)
		back, err := in.Copy(second.HostOptions(), gobuffer.TypeOf[uint16]())
		require.NoError(t, err)
		w.assertNeverBlocked()
		told := second.Done(t.Context())
		w.finish()
		require.NoError(t, receive(t, told))
		elements, err := gobuffer.Typed[uint16](back)
		require.NoError(t, err)
		require.NoError(t, elements.OnHost(t.Context(), gobuffer.Read, func(values []uint16) error {
			assert.Equal(t, []uint16{7, 7, 7, 7}, values)
			return nil
		}))
		require.NoError(t, errors.Join(raw.Close(), copied.Close(), back.Close(), p.Release(), first.End(), second.End()))
	}
}

// plain has device memory of one kind, and no page-locked memory.
type plain struct{ *backendtest.Fake }

func (plain) Supports(a backends.Allocator, _ int) error {
	if a == backends.CUDA {
		return nil
	}
	return &backends.UnavailableError{Backend: "cuda"}
}

func TestBuffersWhereADeviceHasNotAllMemory(t *testing.T) {
	r, err := gobuffer.NewRuntime(plain{backendtest.NewFake(backendtest.FakeOptions{})})
	require.NoError(t, err)
	s := hetero.New(r)
	w := &world{t: t, runtime: r, scheduler: s}
	ctx := w.begin(cuda0)
	assert.Equal(t, backends.CUDA, ctx.Options().Allocator)
	assert.Equal(t, backends.Malloc, ctx.HostOptions().Allocator)
	require.NoError(t, ctx.End())
	var none *hetero.Context
	assert.Zero(t, none.Options())
}
