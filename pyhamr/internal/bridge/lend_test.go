package bridge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

func TestAnAccessHasElementsForItsOwn(t *testing.T) {
	live := LiveReferences()
	a, value, lent, result := describe(arrayiface.Int32, 3), describe(arrayiface.Int32), describe(arrayiface.Uint8),
		describe(arrayiface.Uint8)
	create(t, a, 1)
	create(t, value, 7)
	var access uint64
	err := OpenAccess(&a.Descriptor, backends.SpaceHost, -1, gobuffer.ReadWrite, &lent.Descriptor, &access)
	require.NoError(t, err)
	assert.Equal(t, a.Memory, lent.Memory, "in place")
	assert.NotZero(t, lent.Holder)
	err = fill(&a.Descriptor, &value.Descriptor, &result.Descriptor)
	require.ErrorIs(t, err, gobuffer.ErrInUse)
	assert.Equal(t, InUse, Classify(err).Kind)
	require.NoError(t, fill(&lent.Descriptor, &value.Descriptor, &result.Descriptor))
	assert.Equal(t, lent.Holder, result.Holder, "who holds the elements holds them afterwards")
	err = OpenAccess(&a.Descriptor, backends.SpaceHost, -1, gobuffer.Read, &result.Descriptor, &access)
	require.ErrorIs(t, err, gobuffer.ErrInUse)
	require.NoError(t, EndAccess(access, true, false, nil, nil))
	require.ErrorIs(t, EndAccess(access, true, false, nil, nil), gobuffer.ErrFreed)
	assert.Equal(t, "{7, 7, 7}", text(t, a))
	err = OpenAccess(&a.Descriptor, backends.SpaceHost, -1, gobuffer.Read, &lent.Descriptor, &access)
	require.NoError(t, err)
	assert.NotZero(t, lent.Flags&readOnlyFlag)
	require.NoError(t, EndAccess(access, false, true, nil, nil))
	err = OpenAccess(&a.Descriptor, backends.SpaceHost, -1, gobuffer.Mode(9), &lent.Descriptor, &access)
	assert.Equal(t, ValueError, Classify(err).Kind)
	require.NoError(t, Release(a.Memory))
	require.NoError(t, Release(value.Memory))
	assert.Equal(t, live, LiveReferences())
}
