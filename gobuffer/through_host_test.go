package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

var (
	onHost   = place{backends.Malloc, -1}
	onDevice = place{backends.CUDA, 0}
)

// rows is an arrangement of rows that are as many bytes apart as they are long, and 20
// more.
var rows = arrangement{"rows", func(k arrayiface.ElementType, s []int) []int {
	return []int{s[1]*k.Size() + 20, k.Size()}
}}

// What a device has no room to rearrange, the host does.
func TestAFullDevicesElementsAreRearrangedByTheHost(t *testing.T) {
	for name, f := range map[string]func(w *world, a *gobuffer.Array) []int{
		"a strided read": func(w *world, a *gobuffer.Array) []int {
			v := w.slice(a, 0, 6, 2)
			defer v.Close()
			w.assertHolds(v, numbers(1, 3, 5))
			return []int{1, 2, 3, 4, 5, 6}
		},
		"a conversion": func(w *world, a *gobuffer.Array) []int {
			b, err := a.Copy(onHost.options(gobuffer.Sync), arrayiface.Uint8)
			require.NoError(w.t, err)
			defer b.Close()
			w.assertHolds(b, model{arrayiface.Uint8, []int{6}, []byte{1, 2, 3, 4, 5, 6}})
			return []int{1, 2, 3, 4, 5, 6}
		},
		"a strided write": func(w *world, a *gobuffer.Array) []int {
			v, b := w.slice(a, 0, 6, 2), w.array(onHost.options(gobuffer.Sync), numbers(7, 8, 9))
			defer v.Close()
			defer b.Close()
			require.NoError(w.t, v.Write(b))
			return []int{7, 2, 8, 4, 9, 6}
		},
		"a strided fill": func(w *world, a *gobuffer.Array) []int {
			v, b := w.slice(a, 5, -1, -2), w.scalar(arrayiface.Int32, 9)
			defer v.Close()
			defer b.Close()
			require.NoError(w.t, v.Fill(b))
			return []int{1, 9, 3, 9, 5, 9}
		},
		"turning it round": func(w *world, a *gobuffer.Array) []int {
			v := w.slice(a, 5, -1, -1)
			defer v.Close()
			require.NoError(w.t, a.Write(v))
			return []int{6, 5, 4, 3, 2, 1}
		},
		"moving it along": func(w *world, a *gobuffer.Array) []int {
			require.NoError(w.t, a.Set(1, a, 0, 5))
			return []int{1, 1, 2, 3, 4, 5}
		},
	} {
		for _, p := range []place{onDevice, {backends.CUDAAsync, 0}} {
			w := newWorld(t, 1, backendtest.FakeOptions{Memory: 24, Manual: true, Strict: true})
			a := w.array(p.options(gobuffer.Async), before)
			want := f(w, a)
			w.assertHolds(a, numbers(want...), "%s at %s", name, p)
			closeAll(t, a)
		}
	}
}

func TestNothingIsTakenOnADeviceThatRearrangesNothing(t *testing.T) {
	w := newWorld(t, 1, backendtest.FakeOptions{NoConvert: true, Manual: true, Strict: true})
	a := w.lay(onDevice, onDevice.options(gobuffer.Async), counting(arrayiface.Int32, 300, 400), rows)
	b := w.lay(onHost, onHost.options(gobuffer.Async), counting(arrayiface.Int32, 300, 400), rows)
	v := w.scalar(arrayiface.Int32, 4)
	taken := w.cuda.CallCount("Allocate")
	for name, f := range map[string]func() error{
		"write":  func() error { return a.Write(b) },
		"read":   func() error { return b.Write(a) },
		"fill":   func() error { return a.Fill(v) },
		"itself": func() error { return a.Write(a) },
	} {
		require.NoError(t, f(), name)
		assert.Equal(t, taken, w.cuda.CallCount("Allocate"), name)
	}
	closeAll(t, a, b, v)
}

// Without kernels a device has but copies and fills of bytes that follow one another.
func TestAStridedWriteWithoutKernelsMovesEachRunOnce(t *testing.T) {
	turned := arrangement{"turned",
		func(k arrayiface.ElementType, s []int) []int { return []int{k.Size(), s[0] * k.Size()} }}
	scattered := arrangements[2]
	shape := []int{3, 4}
	for _, c := range []struct {
		name          string
		kind          arrayiface.ElementType
		how           arrangement
		from          place
		fromKind      arrayiface.ElementType
		fromHow       arrangement
		copies, fills int
	}{
		{"rows from the host", arrayiface.Int32, rows, onHost, arrayiface.Int32, arrangements[0], 3, 3},
		{"rows from rows of the host", arrayiface.Int32, rows, onHost, arrayiface.Int32, rows, 3, 3},
		{"rows from columns of the host", arrayiface.Int32, rows, onHost, arrayiface.Int32, turned, 3, 3},
		{"rows from numbers of another type", arrayiface.Float32, rows, onHost, arrayiface.Int8, arrangements[0], 3, 3},
		{"single elements", arrayiface.Int32, scattered, onHost, arrayiface.Int32, arrangements[0], 12, 12},
		{"elements without gaps in another order", arrayiface.Int32, turned, onHost, arrayiface.Int32, arrangements[0], 1, 1},
		{"elements without gaps, backwards", arrayiface.Int32, arrangements[3], onHost, arrayiface.Int32, arrangements[0], 1,
			1},
		{"rows from rows of the device", arrayiface.Int32, rows, onDevice, arrayiface.Int32, rows, 3, 3},
		{"rows from another device", arrayiface.Int32, rows, place{backends.CUDA, 1}, arrayiface.Int32, arrangements[0], 3,
			3},
		{"rows from columns of another device", arrayiface.Int32, rows, place{backends.CUDA, 1}, arrayiface.Int32, turned,
			1 + 3, 3},
		{"rows from managed memory", arrayiface.Int32, rows, place{backends.CUDAUnified, 0}, arrayiface.Int32,
			arrangements[0], 3, 3},
		{"rows from another runtime's managed memory", arrayiface.Int32, rows, place{backends.HIPUnified, 0},
			arrayiface.Int32, arrangements[0], 3, 3},
		{"rows from columns of another runtime", arrayiface.Int32, rows, place{backends.HIP, 0}, arrayiface.Int32, turned, 3,
			3},
	} {
		w := newWorld(t, 2, backendtest.FakeOptions{NoConvert: true, Manual: true, Strict: true})
		a := w.lay(onDevice, onDevice.options(gobuffer.Async), counting(c.kind, shape...), c.how)
		b := w.lay(c.from, c.from.options(gobuffer.Async), counting(c.fromKind, shape...), c.fromHow)
		zeros := w.array(onHost.options(gobuffer.Sync),
			model{c.kind, shape, make([]byte, len(counting(c.kind, shape...).data))})
		require.NoError(t, a.Write(zeros))
		copies := w.cuda.CallCount("Copy")
		require.NoError(t, a.Write(b))
		assert.Equal(t, c.copies, w.cuda.CallCount("Copy")-copies, c.name)
		w.assertHolds(a, counting(c.kind, shape...), c.name)
		assert.Zero(t, w.strays(a), c.name)

		copies, fills := w.cuda.CallCount("Copy"), w.cuda.CallCount("Fill")
		v := w.scalar(arrayiface.Int32, 1)
		require.NoError(t, a.Fill(v))
		assert.Equal(t, c.fills, w.cuda.CallCount("Fill")-fills, "fill of %s", c.name)
		assert.Equal(t, copies, w.cuda.CallCount("Copy"), "fill of %s", c.name)
		want := model{c.kind, shape, nil}
		for range 12 {
			want.data = append(want.data, element(c.kind, 1)...)
		}
		w.assertHolds(a, want, "fill of %s", c.name)
		assert.Zero(t, w.strays(a), "fill of %s", c.name)
		closeAll(t, a, b, zeros, v)
	}
}

// A device that moves elements but converts none of a type gets them converted, at once.
func TestConvertedElementsAreScatteredByTheDevice(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.lay(onDevice, onDevice.options(gobuffer.Async), counting(arrayiface.Float8E4M3FN, 30, 40), rows)
	b := w.array(onHost.options(gobuffer.Async), counting(arrayiface.Float32, 30, 40))
	copies, conversions := w.cuda.CallCount("Copy"), w.cuda.CallCount("Convert")
	require.NoError(t, a.Write(b))
	assert.Equal(t, 1, w.cuda.CallCount("Copy")-copies)
	assert.Equal(t, 1, w.cuda.CallCount("Convert")-conversions)
	assert.Zero(t, w.strays(a))
	closeAll(t, a, b)
}

// Runs that were enqueued before one failed read memory that goes then.
func TestAFailureBetweenRunsLeavesNothingUnderWay(t *testing.T) {
	for name, f := range map[string]func(a, b, v *gobuffer.Array) error{
		"Copy": func(a, b, _ *gobuffer.Array) error { return a.Write(b) },
		"Fill": func(a, _, v *gobuffer.Array) error { return a.Fill(v) },
	} {
		w := newWorld(t, 1, backendtest.FakeOptions{NoConvert: true, Manual: true, Strict: true})
		o := onDevice.options(gobuffer.Async)
		o.Stream = w.stream(w.cuda, 0)
		a := w.lay(onDevice, o, counting(arrayiface.Int32, 3, 4), rows)
		b, v := w.array(onHost.options(0), counting(arrayiface.Int8, 3, 4)), w.scalar(arrayiface.Int32, 1)
		w.cuda.FailAt(name, 3, errInjected)
		assert.ErrorIs(t, f(a, b, v), error(errInjected))
		idle, err := w.cuda.Idle(0, o.Stream)
		require.NoError(t, err)
		assert.True(t, idle, "%s: two runs are still to be done", name)
		closeAll(t, a, b, v)
	}
}
