package hetero_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// built is a program of examples.
func built(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	said, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../examples/"+name).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return program
}

func output(t *testing.T, program string, environment ...string) string {
	t.Helper()
	command := exec.Command(program)
	command.Env = append(os.Environ(), environment...)
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return string(said)
}

// The example finds the same on the CPU and, where there is a C compiler for the emulated driver, on
// devices.
func TestTheExampleOfEvents(t *testing.T) {
	program := built(t, "events")
	sums := []int{568680795, 569487511, 569600968, 570091174, 570409852, 570129203, 571274891, 570777790}
	expected := func(devices int) string {
		want := fmt.Sprintf("devices: %d\n", devices)
		for event, sum := range sums {
			where := "cpu"
			if devices > 0 {
				where = fmt.Sprintf("cuda:%d", event%devices)
			}
			want += fmt.Sprintf("event %d: %d on %s\n", event, sum, where)
		}
		return want
	}
	assert.Equal(t, expected(0), output(t, program, "HAMR_ACCELERATORS=none"))

	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if _, err := exec.LookPath(strings.Fields(compiler)[0]); err != nil {
		t.Skip("no C compiler to build the emulator with")
	}
	emulator := filepath.Join(t.TempDir(), "emulator.so")
	build := exec.Command("sh", "../tests/emulator/build.sh", emulator)
	build.Env = append(os.Environ(), "SONAME=libhamr-emulator.so")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, devices := range []int{1, 4} {
		assert.Equal(t, expected(devices), output(t, program, "HAMR_ACCELERATORS=cuda", "HAMR_CUDA_LIBRARY="+emulator,
			fmt.Sprintf("HAMR_EMULATOR_DEVICES=%d", devices)))
	}
}
