package bridge

import (
	"os"
	"runtime/coverage"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

// TestWalkOfAnAssignment is what "make house" counts the calls of: the second b[...] = array, as Python makes it.
func TestWalkOfAnAssignment(t *testing.T) {
	to, from, result := describe(arrayiface.Float64, 4), describe(arrayiface.Float64, 4), describe(arrayiface.Uint8)
	create(t, to, 1)
	create(t, from, 2)
	defer Release(to.Memory)
	defer Release(from.Memory)
	require.NoError(t, Write(&to.Descriptor, &from.Descriptor, &result.Descriptor))
	folder := os.Getenv("HAMR_HOUSE_WALK")
	if folder != "" {
		require.NoError(t, coverage.WriteMetaDir(folder))
		require.NoError(t, coverage.ClearCounters())
	}
	err := Write(&to.Descriptor, &from.Descriptor, &result.Descriptor)
	if folder != "" {
		require.NoError(t, coverage.WriteCountersDir(folder))
	}
	require.NoError(t, err)
	assert.Equal(t, "{2, 2, 2, 2}", text(t, to))
}
