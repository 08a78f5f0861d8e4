package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// Memory that migrates stays where it is if much of it is copied.
func TestDevicesCopyManagedMemory(t *testing.T) {
	managed := func(device int) place { return place{backends.CUDAUnified, device} }
	large, small := []int{200, 100}, []int{20, 10}
	for _, c := range []struct {
		name                string
		shape               []int
		from, to            place
		kind                arrayiface.ElementType
		how                 arrangement
		copies, conversions int
	}{
		{"alike", large, managed(0), managed(0), arrayiface.Int32, arrangements[0], 1, 0},
		{"on two devices", large, managed(1), managed(0), arrayiface.Int32, arrangements[0], 1, 0},
		{"from rows", large, managed(1), managed(0), arrayiface.Int32, rows, 0, 1},
		{"little", small, managed(0), managed(0), arrayiface.Int32, arrangements[0], 0, 0},
		{"of another runtime", large, place{backends.HIPUnified, 0}, managed(0), arrayiface.Int32, arrangements[0], 0, 0},
		{"page-locked", large, place{backends.CUDAHost, -1}, managed(0), arrayiface.Int32, arrangements[0], 0, 0},
		{"that no device converts", large, managed(0), managed(0), arrayiface.Int8, arrangements[0], 0, 0},
		{"float8", large, managed(0), managed(0), arrayiface.Float8E4M3, arrangements[0], 0, 0},
	} {
		for _, mode := range []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync} {
			w := newWorld(t, 2, late)
			m := model{c.kind, c.shape, nil}
			for range count(c.shape) {
				m.data = append(m.data, element(c.kind, 1)...)
			}
			b := w.lay(c.from, c.from.options(mode), m, c.how)
			o := c.to.options(mode)
			o.Stream = w.stream(w.cuda, c.to.device)
			a, err := w.runtime.NewArray(arrayiface.Int32, c.shape, o)
			require.NoError(t, err)
			copies, conversions := w.cuda.CallCount("Copy"), w.cuda.CallCount("Convert")
			require.NoError(t, a.Write(b))
			assert.Equal(t, c.copies, w.cuda.CallCount("Copy")-copies, c.name)
			if c.kind == arrayiface.Int32 {
				assert.Equal(t, c.conversions, w.cuda.CallCount("Convert")-conversions, c.name)
			}
			reference := w.array(onHost.options(gobuffer.Sync), model{arrayiface.Int32, c.shape, make([]byte, 4*count(c.shape))})
			require.NoError(t, reference.Write(b))
			want := w.read(reference)
			if mode != gobuffer.Async {
				assert.Equal(t, want.data, w.peek(a.Memory()), "%s: %s waits", c.name, mode)
			}
			closeAll(t, b)
			w.assertHolds(a, want, "%s, %s", c.name, mode)
			closeAll(t, a, reference)
		}
	}
}

func TestManagedElementsThatOverlapAreMoved(t *testing.T) {
	w := newWorld(t, 1, late)
	p := place{backends.CUDAUnified, 0}
	const n = 40000
	m := model{arrayiface.Int32, []int{n}, nil}
	for i := range n {
		m.data = append(m.data, byte(i), byte(i>>8), 0, 0)
	}
	a := w.array(p.options(gobuffer.Async), m)
	require.NoError(t, a.Set(1, a, 0, n-1))
	m.data = append(append([]byte{}, m.data[:4]...), m.data[:4*(n-1)]...)
	w.assertHolds(a, m)
	closeAll(t, a)
}

// Memory that one of the devices shares with the host is not in place on the others, and is not converted
// by them.
func TestMemoryOfOneDeviceOnly(t *testing.T) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceSYCL, Devices: 2, Manual: true, Strict: true})
	r, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	t.Cleanup(func() { fake.AssertClean(t) })
	for _, a := range []backends.Allocator{backends.SYCLShared, backends.SYCLHost} {
		b, err := r.NewArray(arrayiface.Int32, []int{200, 100}, gobuffer.Options{Allocator: a, Device: 1})
		require.NoError(t, err)
		for device := range 2 {
			h, err := b.Access(backends.SpaceSYCL, device)
			require.NoError(t, err)
			assert.Equal(t, device != 1, h.Temporary(), "%s on device %d", a, device)
			require.NoError(t, h.Release())
		}
		h, err := b.Access(backends.SpaceHost, 0)
		require.NoError(t, err)
		assert.False(t, h.Temporary())
		require.NoError(t, h.Release())
		for device := range 2 {
			c, err := r.NewArray(arrayiface.Int32, []int{200, 200}, gobuffer.Options{Allocator: a, Device: device})
			require.NoError(t, err)
			part, err := c.Slice(1, 0, 200, 2)
			require.NoError(t, err)
			conversions := fake.CallCount("Convert")
			require.NoError(t, b.Write(part))
			assert.Equal(t, device == 1, fake.CallCount("Convert") > conversions, "%s from device %d", a, device)
			closeAll(t, part, c)
		}
		closeAll(t, b)
	}
}
