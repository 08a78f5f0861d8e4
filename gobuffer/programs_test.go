package gobuffer_test

import (
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goTool runs the go command in a folder, without the network. What it says is the result.
func goTool(t *testing.T, folder string, environment []string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.Command("go", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(),
		append([]string{"GOWORK=off", "GOPROXY=off", "GOFLAGS=-buildvcs=false"}, environment...)...)
	said, err := command.CombinedOutput()
	return string(said), err
}

// A module outside the checkout, as a user's is, has what the example says it needs.
func TestTheExampleModuleRunsElsewhere(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	folder := t.TempDir()
	below, err := filepath.Rel(root, folder)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(below, ".."), "%s is in the checkout", folder)
	require.NoError(t, os.CopyFS(folder, os.DirFS("../examples/heat")))
	for _, arguments := range [][]string{
		{"mod", "edit", "-replace", "hamr=" + root},
		{"vet", "."},
	} {
		said, err := goTool(t, folder, nil, arguments...)
		require.NoError(t, err, said)
	}
	said, err := goTool(t, folder, nil, "run", ".", "-out", "rod.npy")
	require.NoError(t, err, said)
	assert.Equal(t, `heated: [293.15 K 600.00 K 700.00 K 600.00 K 293.15 K]
before: 60 cells, hottest 700.00 K mean 310.16 K
after:  60 cells, hottest 333.74 K mean 310.16 K
`, said)

	saved, err := os.ReadFile(filepath.Join(folder, "rod.npy"))
	require.NoError(t, err)
	header, elements := saved[:128], saved[128:]
	start := "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (60,), } "
	assert.Equal(t, start+strings.Repeat(" ", len(header)-len(start)-1)+"\n", string(header))
	require.Len(t, elements, 60*4)
	hottest := float32(0)
	for i := range 60 {
		hottest = max(hottest, math.Float32frombits(binary.LittleEndian.Uint32(elements[4*i:])))
	}
	assert.InDelta(t, 333.74, hottest, 0.01)
}

// What the package comment says of CGO_ENABLED=0.
func TestWithoutCgo(t *testing.T) {
	without := []string{"CGO_ENABLED=0"}
	said, err := goTool(t, "..", without, "build", "./gobuffer", "./arrayiface", "./backends")
	require.NoError(t, err, said)
	said, err = goTool(t, "..", without, "build", "./backends/all")
	require.Error(t, err)
	require.NotContains(t, said, "undefined")
	needed := regexp.MustCompile(`"hamr's backends need cgo: build with CGO_ENABLED=1 and a C compiler"`)
	assert.Len(t, needed.FindAllString(said, -1), 2, said)
}
