package setting

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"1": 1, "20": 20, "18446744073709551615": math.MaxUint64} {
		n, set, err := Number(func(string) string { return text }, "HAMR_X", "a number", 1, math.MaxUint64)
		assert.NoError(t, err)
		assert.True(t, set)
		assert.Equal(t, want, n)
	}
	_, set, err := Number(func(string) string { return "" }, "HAMR_X", "a number", 1, 2)
	assert.NoError(t, err)
	assert.False(t, set)
	for _, text := range []string{"0", "11", "-1", "1GB", " 1", "1.5", "18446744073709551616"} {
		_, set, err := Number(func(string) string { return text }, "HAMR_X", "a number of bytes", 1, 10)
		assert.True(t, set)
		assert.EqualError(t, err, `HAMR_X is "`+text+`": a number of bytes is needed`)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int{"": 7, "12": 12} {
		n, err := Bytes(func(string) string { return text }, "HAMR_X", 1, 7)
		assert.NoError(t, err)
		assert.Equal(t, want, n)
	}
	_, err := Bytes(func(string) string { return "0" }, "HAMR_X", 1, 7)
	assert.EqualError(t, err, `HAMR_X is "0": a number of bytes is needed`)
}
