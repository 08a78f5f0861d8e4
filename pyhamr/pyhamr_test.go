package pyhamr

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
)

func TestNamesOfElements(t *testing.T) {
	for name, call := range map[string]func() (int, error){
		"f8":     func() (int, error) { return ParseElement("f8") },
		"double": func() (int, error) { return ParseUpstreamElement("double") },
		"d":      func() (int, error) { return ParseFormat("d", 8) },
	} {
		number, err := call()
		require.NoError(t, err, name)
		assert.Equal(t, int(arrayiface.Float64), number, name)
	}
	_, err := ParseElement("float65")
	require.ErrorContains(t, err, "float65")
}

func TestConfineOnlyEverTakes(t *testing.T) {
	limit, processors := debug.SetMemoryLimit(-1), runtime.GOMAXPROCS(0)
	defer func() {
		debug.SetMemoryLimit(limit)
		runtime.GOMAXPROCS(processors)
	}()
	runtime.GOMAXPROCS(3)
	Confine(1<<40, 1000, 0)
	assert.EqualValues(t, min(limit, 1<<40), debug.SetMemoryLimit(-1))
	assert.Equal(t, 3, runtime.GOMAXPROCS(0))
	Confine(64<<20, 2, 64<<20)
	assert.EqualValues(t, 64<<20, debug.SetMemoryLimit(-1))
	assert.Equal(t, 2, runtime.GOMAXPROCS(0))
	Confine(1<<30, 0, 0)
	assert.EqualValues(t, 64<<20, debug.SetMemoryLimit(-1))
	assert.Equal(t, 1, runtime.GOMAXPROCS(0))
}
