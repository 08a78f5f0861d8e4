package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
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
