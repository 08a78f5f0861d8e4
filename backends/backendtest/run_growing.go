package backendtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// testGrowing makes memory larger while work on it is pending.
func (s suite) testGrowing(t *testing.T) {
	grower, ok := backends.As[backends.Grower](s.b)
	if !ok || !grower.Grows(s.a) {
		return
	}
	const first = 1000
	at, err := s.b.Allocate(backends.Request{Allocator: s.a, Device: s.device, Size: first, Zero: true})
	require.NoError(t, err)
	region, has := s.region(at), first
	free := func(r backends.Region, size int) {
		s.wait(t, 0)
		assert.NoError(t, s.b.Free(r, size, 0))
	}
	want := make([]byte, first)
	for _, size := range []int{first + 1, 5000, s.o.LargestSize, 3 * s.o.LargestSize} {
		if size <= has {
			continue
		}
		randomBytes(want[:first])
		s.write(t, region, want[:first], 0)
		grown, err := grower.Grow(region, has, size)
		if errors.Is(err, errors.ErrUnsupported) {
			break
		}
		require.NoError(t, err)
		require.GreaterOrEqual(t, grown, size)
		require.NoError(t, s.b.Fill(shifted(region, has), []byte{byte(size)}, grown-has, 0))
		want, has = slices.Concat(want, repeated(byte(size), grown-has)), grown
		equal(t, want, s.read(t, region, has, 0), "grown to %d bytes", has)
	}
	_, err = grower.Grow(region, has, s.o.OutOfMemory)
	require.Error(t, err)
	var full *backends.OutOfMemoryError
	if !errors.Is(err, errors.ErrUnsupported) {
		require.ErrorAs(t, err, &full)
		assert.Equal(t, s.o.OutOfMemory, full.Size)
	}
	equal(t, want, s.read(t, region, has, 0), "after there was no more memory")
	_, _, err = grower.Relocate(region, has, s.o.OutOfMemory)
	require.ErrorAs(t, err, &full)
	to, moved, err := grower.Relocate(region, has, has+1)
	if errors.Is(err, errors.ErrUnsupported) {
		free(region, has)
		return
	}
	require.NoError(t, err)
	other := s.region(to)
	require.NotEqual(t, at, to)
	equal(t, want, s.read(t, other, has, 0), "at other addresses")
	require.NoError(t, s.b.Fill(region, []byte{7}, first, 0))
	copy(want, repeated(7, first))
	equal(t, want, s.read(t, other, has, 0), "what was written at the old addresses")
	free(region, has)
	require.NoError(t, s.b.Fill(shifted(other, has), []byte{8}, moved-has, 0))
	equal(t, slices.Concat(want, repeated(8, moved-has)), s.read(t, other, moved, 0), "without the old addresses")
	free(other, moved)
}
