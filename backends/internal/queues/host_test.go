package queues

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestPatternsThatRuntimesFillWith(t *testing.T) {
	for _, each := range []struct {
		pattern, short string
		at             backends.Address
		fills          bool
	}{
		{"aaaaaaa", "a", 3, true},
		{"abab", "ab", 2, true},
		{"abab", "ab", 3, false},
		{"abcabc", "abc", 0, false},
		{"abcdabcdabcdabcd", "abcd", 4, true},
		{"abcdefgh", "abcdefgh", 8, true},
		{"abcdefgh", "abcdefgh", 4, false},
		{"abcdefghijklmnop", "abcdefghijklmnop", 16, true},
	} {
		short := Shortest([]byte(each.pattern))
		assert.Equal(t, each.short, string(short))
		assert.Equal(t, each.fills, Fills(each.at, short), "%s at %d", each.pattern, each.at)
	}
}

func TestThroughHostCopiesInParts(t *testing.T) {
	const size = 2*largestChunk + 5
	var loaded, stored []int
	var at backends.Address
	failed := errors.New("no")
	note := func(list *[]int) func(backends.Address, int, int) error {
		return func(host backends.Address, offset, n int) error {
			at = host
			*list = append(*list, offset, n)
			return nil
		}
	}
	require.NoError(t, ThroughHost(size, note(&loaded), note(&stored)))
	assert.NotZero(t, at)
	assert.Equal(t, []int{0, largestChunk, largestChunk, largestChunk, 2 * largestChunk, 5}, loaded)
	assert.Equal(t, loaded, stored)
	refuse := func(backends.Address, int, int) error { return failed }
	require.ErrorIs(t, ThroughHost(size, refuse, note(&stored)), failed)
	require.ErrorIs(t, ThroughHost(size, note(&loaded), refuse), failed)
	assert.Len(t, stored, 6, "nothing is stored that was not loaded")
}
