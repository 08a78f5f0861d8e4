package pyhamr

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/pyhamr/internal/bridge"
)

func TestReportsAreJSON(t *testing.T) {
	text, err := Backends()
	require.NoError(t, err)
	var found []backendReport
	require.NoError(t, json.Unmarshal([]byte(text), &found))
	require.NotEmpty(t, found)
	assert.Equal(t, "host", found[0].Name)
	assert.True(t, found[0].Available)
	for _, text := range []string{Statistics(), Allocators(), Elements()} {
		assert.True(t, json.Valid([]byte(text)), text)
	}
}

func TestCheckInterfaceNamesTheKey(t *testing.T) {
	number, err := CheckInterface("<f8", "2,3", "24,8", 4096, 0, -1, false, 3)
	require.NoError(t, err)
	assert.Equal(t, 12, number)
	for key, call := range map[string]func() (int, error){
		"typestr": func() (int, error) { return CheckInterface(">f8", "2", "-", 4096, 0, -1, false, 3) },
		"shape":   func() (int, error) { return CheckInterface("<f8", "-2", "-", 4096, 0, -1, false, 3) },
		"strides": func() (int, error) { return CheckInterface("<f8", "2", "8,8", 4096, 0, -1, false, 3) },
		"data":    func() (int, error) { return CheckInterface("<f8", "2", "-", 0, 0, -1, false, 3) },
		"mask":    func() (int, error) { return CheckInterface("<f8", "2", "-", 4096, 0, -1, true, 3) },
		"version": func() (int, error) { return CheckInterface("<f8", "2", "-", 4096, 0, -1, false, 0) },
		"offset":  func() (int, error) { return CheckInterface("<f8", "2", "-", 4096, 99, 16, false, 3) },
	} {
		_, err := call()
		require.Error(t, err, key)
		assert.True(t, strings.HasPrefix(err.Error(), bridge.Prefix))
		assert.Contains(t, err.Error(), key)
	}
}

func TestParseDLPack(t *testing.T) {
	number, err := ParseDLPack(2, 64, 1)
	require.NoError(t, err)
	assert.Equal(t, int(arrayiface.Float64), number)
	_, err = ParseDLPack(2, 64, 4)
	require.Error(t, err)
	assert.True(t, strings.HasPrefix(err.Error(), bridge.Prefix+"TypeError"))
	assert.Contains(t, err.Error(), "lanes must be 1")
}

func TestConfineOnlyEverTakes(t *testing.T) {
	limit, processors := debug.SetMemoryLimit(-1), runtime.GOMAXPROCS(0)
	defer func() {
		debug.SetMemoryLimit(limit)
		runtime.GOMAXPROCS(processors)
	}()
	runtime.GOMAXPROCS(3)
	Confine(1<<40, 1000)
	assert.EqualValues(t, min(limit, 1<<40), debug.SetMemoryLimit(-1))
	assert.Equal(t, 3, runtime.GOMAXPROCS(0))
	Confine(64<<20, 2)
	assert.EqualValues(t, 64<<20, debug.SetMemoryLimit(-1))
	assert.Equal(t, 2, runtime.GOMAXPROCS(0))
	Confine(1<<30, 0)
	assert.EqualValues(t, 64<<20, debug.SetMemoryLimit(-1))
	assert.Equal(t, 1, runtime.GOMAXPROCS(0))
}

func TestContentsOnNoMemoryDoNotPanic(t *testing.T) {
	_, err := Text(0, 10)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "InternalError")
}
