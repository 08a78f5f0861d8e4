package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestWhatTheDriverCopiesIsInPartsWhereItMayBeStopped(t *testing.T) {
	stop := new(backends.Stop)
	var parts []backends.Region
	var sizes []int
	act := func(dst, src backends.Region, size int) error {
		assert.Equal(t, dst.Address-1000, src.Address)
		parts, sizes = append(parts, dst), append(sizes, size)
		if len(parts) == 3 {
			stop.Ask()
		}
		return nil
	}
	dst, src := backends.Region{Address: 1000}, backends.Region{}
	require.NoError(t, inParts(nil, dst, src, 10*stoppedAfter, act))
	assert.Equal(t, []int{10 * stoppedAfter}, sizes, "else it is one copy")
	parts, sizes = nil, nil
	require.NoError(t, inParts(stop, dst, src, stoppedAfter+1, act))
	assert.Equal(t, []int{stoppedAfter, 1}, sizes)
	assert.EqualValues(t, 1000+stoppedAfter, parts[1].Address)
	require.ErrorIs(t, inParts(stop, dst, src, 10*stoppedAfter, act), backends.ErrStopped)
	assert.Len(t, parts, 3)
}
