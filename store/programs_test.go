package store_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheExampleOfObjects(t *testing.T) {
	program := filepath.Join(t.TempDir(), "objects")
	said, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../examples/objects").CombinedOutput()
	require.NoError(t, err, "%s", said)
	said, err = exec.Command(program).CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Equal(t, `row 0 begins with 0
row 1 begins with 1
row 2 begins with 2
row 3 begins with 3
metadata: {"step": 7}
writing to it: buffer is read-only: accepted is a writable buffer; copy() makes one
`, string(said))
}
