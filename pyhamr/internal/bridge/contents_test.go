package bridge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

func text(t *testing.T, r *room) string {
	t.Helper()
	var elements string
	err := Text(&r.Descriptor, 0, func(text string) { elements = text })
	require.NoError(t, err)
	return elements
}

func fill(d, value, result *Descriptor) error {
	return Change(d, value, result, func(a, v *gobuffer.Array) error { return a.Fill(v) })
}

func TestChangesDescribeWhatBecomesOfAnArray(t *testing.T) {
	live := LiveReferences()
	a, value, other := describe(arrayiface.Int32, 3), describe(arrayiface.Float64), describe(arrayiface.Int8, 2)
	create(t, a, 1)
	create(t, value, 7)
	create(t, other, 5)
	for _, step := range []struct {
		change func(result *Descriptor) error
		want   string
	}{
		{func(r *Descriptor) error { return fill(&a.Descriptor, &value.Descriptor, r) }, "{7, 7, 7}"},
		{func(r *Descriptor) error {
			return Change(&a.Descriptor, nil, r, func(a, v *gobuffer.Array) error { return a.Reserve(100, v) })
		}, "{7, 7, 7}"},
		{func(r *Descriptor) error { return Append(&a.Descriptor, &other.Descriptor, r) }, "{7, 7, 7, 5, 5}"},
		{func(r *Descriptor) error { return SetElements(&a.Descriptor, 1, &other.Descriptor, 1, 1, r) }, "{7, 5, 7, 5, 5}"},
		{func(r *Descriptor) error { return Resize(&a.Descriptor, []int{2, 3}, &value.Descriptor, r) }, "{7, 5, 7, 5, 5, 7}"},
		{func(r *Descriptor) error { return Move(&a.Descriptor, backends.CPP, backends.HostDevice, r) },
			"{7, 5, 7, 5, 5, 7}"},
		{func(r *Descriptor) error { return Assign(&a.Descriptor, &other.Descriptor, r) }, "{5, 5}"},
		{func(r *Descriptor) error { return WriteElements(&a.Descriptor, &value.Descriptor, r) }, "{7, 7}"},
	} {
		result := describe(arrayiface.Uint8)
		require.NoError(t, step.change(&result.Descriptor))
		if result.Memory != a.Memory {
			require.NoError(t, Release(a.Memory))
		}
		a = result
		assert.Equal(t, step.want, text(t, a))
	}
	require.NoError(t, Release(a.Memory))
	require.NoError(t, Release(value.Memory))
	require.NoError(t, Release(other.Memory))
	assert.Equal(t, live, LiveReferences())
}

func TestACopyAndAViewOfAnotherShape(t *testing.T) {
	a := describe(arrayiface.Int16, 2, 3)
	create(t, a, 4)
	defer Release(a.Memory)
	copied, view := describe(arrayiface.Uint8), describe(arrayiface.Uint8)
	require.NoError(t, Copy(&a.Descriptor, backends.Same, backends.HostDevice, arrayiface.Float64, &copied.Descriptor))
	assert.NotEqual(t, a.Memory, copied.Memory)
	assert.Equal(t, int32(arrayiface.Float64), copied.Element)
	require.NoError(t, Release(copied.Memory))
	shared, err := Reshape(&a.Descriptor, []int{3, -1}, gobuffer.CopyNever, &view.Descriptor)
	require.NoError(t, err)
	assert.True(t, shared)
	assert.Equal(t, a.Memory, view.Memory)
	assert.Equal(t, []int{3, 2}, view.borrowedShape())
	_, err = Reshape(&a.Descriptor, []int{5}, gobuffer.CopyIfNeeded, &view.Descriptor)
	require.ErrorContains(t, err, "5")
}

func TestHostMemoryIsNotWaitedFor(t *testing.T) {
	a := describe(arrayiface.Int16, 2)
	create(t, a, 4)
	defer Release(a.Memory)
	over, err := WaitArray(&a.Descriptor, time.Hour)
	require.NoError(t, err)
	assert.True(t, over)
	require.NoError(t, Synchronize(&a.Descriptor))
}

func TestNoArrayIsADefectOfTheCaller(t *testing.T) {
	err := Text(nil, 10, nil)
	assert.Equal(t, InternalError, Classify(err).Kind)
	assert.Equal(t, InternalError, Classify(fill(nil, nil, nil)).Kind)
}

func TestReports(t *testing.T) {
	names, err := Backends()
	require.NoError(t, err)
	require.Equal(t, "host", names[0])
	for _, name := range names {
		r, err := Report(name)
		require.NoError(t, err)
		assert.Equal(t, name, r.Name)
		assert.NotEmpty(t, r.Allocators)
		assert.NotEqual(t, r.Available, r.Reason != "")
	}
	_, err = Report("abacus")
	require.ErrorContains(t, err, "abacus")
	_, _, err = MemoryInfo("host", 0)
	require.ErrorContains(t, err, "host")
}

func TestALocationOfNobody(t *testing.T) {
	found, err := Locate(4096)
	if err == nil {
		assert.Equal(t, backends.None, found.Allocator)
	}
}
