package bridge

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

// TestWalkOfAnAssignment makes HAMR_HOUSE_WALK times, else once, b[...] = array as Python does: "make house" counts the
// calls.
func TestWalkOfAnAssignment(t *testing.T) {
	to, from, result := describe(arrayiface.Float64, 4), describe(arrayiface.Float64, 4), describe(arrayiface.Uint8)
	create(t, to, 1)
	create(t, from, 2)
	defer Release(to.Memory)
	defer Release(from.Memory)
	times, err := strconv.Atoi(os.Getenv("HAMR_HOUSE_WALK"))
	if err != nil {
		times = 1
	}
	for range times {
		require.NoError(t, WriteElements(&to.Descriptor, &from.Descriptor, &result.Descriptor))
	}
	assert.Equal(t, "{2, 2, 2, 2}", text(t, to))
}
