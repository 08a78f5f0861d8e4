package hip

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends/cuda"
	"hamr/backends/internal/dl"
)

const driverSetting = "HAMR_HIP_STAND_IN_DRIVER"

var buildFolder string

func TestMain(m *testing.M) {
	var err error
	if buildFolder, err = os.MkdirTemp("", "hamr-hip-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(buildFolder)
	os.Exit(code)
}

// built are the emulator's and the stand-in's files; nil where there is no C compiler.
var built = sync.OnceValues(func() (map[string]string, error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if _, err := exec.LookPath(strings.Fields(compiler)[0]); err != nil {
		return nil, nil
	}
	files := map[string]string{}
	for name, script := range map[string]string{"emulator": "../../tests/emulator/build.sh",
		"stand-in": "../../tests/hip/stand_in/build.sh"} {
		files[name] = filepath.Join(buildFolder, name+".so")
		build := exec.Command("sh", script, files[name])
		build.Env = append(os.Environ(), "SONAME=libhamr-emulator-below-hip.so")
		if output, err := build.CombinedOutput(); err != nil {
			return nil, &exec.Error{Name: string(output), Err: err}
		}
	}
	return files, nil
})

// own returns a copy of a built library that nobody has loaded yet.
func own(t testing.TB, name string) string {
	t.Helper()
	files, err := built()
	require.NoError(t, err)
	if files == nil {
		t.Skip("no C compiler to build the stand-in with")
	}
	code, err := os.ReadFile(files[name])
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), name+".so")
	require.NoError(t, os.WriteFile(file, code, 0o700))
	return file
}

type variables map[string]string

// named leaves out what has no name.
func (v variables) named() variables {
	delete(v, "")
	return v
}

// rig is a backend over a stand-in of its own, over an emulator of its own.
type rig struct {
	*cuda.Backend
	emulator struct {
		Fail        uintptr `dl:"emulator_fail"`
		StopFailing uintptr `dl:"emulator_stop_failing"`
		Finish      uintptr `dl:"emulator_finish"`
		Live        uintptr `dl:"emulator_live"`
		Violations  uintptr `dl:"emulator_violations"`
		Violation   uintptr `dl:"emulator_violation"`
	}
	foreign struct {
		SetDevice    uintptr `dl:"hipSetDevice"`
		GetDevice    uintptr `dl:"hipGetDevice"`
		PeekAtError  uintptr `dl:"hipPeekAtLastError"`
		Malloc       uintptr `dl:"hipMalloc"`
		Free         uintptr `dl:"hipFree"`
		StreamCreate uintptr `dl:"hipStreamCreateWithFlags"`
	}
}

// standIn returns a backend that has been probed. The test fails for misuse of the driver, and for memory
// that is left.
func standIn(t testing.TB, more variables) *rig {
	t.Helper()
	all := variables{LibrarySetting: own(t, "stand-in"), driverSetting: own(t, "emulator")}
	maps.Copy(all, more)
	for name, value := range all {
		t.Setenv(name, value)
	}
	r := &rig{Backend: New(func(name string) string { return all[name] })}
	for file, functions := range map[string]any{driverSetting: &r.emulator, LibrarySetting: &r.foreign} {
		library, err := dl.Open([]string{all[file]}, "")
		require.NoError(t, err)
		require.NoError(t, dl.Bind(library, functions))
	}
	require.NoError(t, r.Probe())
	t.Cleanup(func() {
		dl.Call(r.emulator.StopFailing)
		dl.Call(r.emulator.Finish)
		assert.NoError(t, r.Trim())
		assert.Zero(t, int32(dl.Call(r.emulator.Live, cText("memory"))), "memory leaks")
		for i := range int32(dl.Call(r.emulator.Violations)) {
			t.Errorf("misuse: %s", textAt(dl.Call(r.emulator.Violation, uintptr(i))))
		}
	})
	return r
}

func (r *rig) fail(driverFunction string, code int) {
	dl.Call(r.emulator.Fail, cText(driverFunction), 0, uintptr(code))
}

var kept sync.Map // what C functions were given

func cText(text string) uintptr {
	bytes := append([]byte(text), 0)
	kept.Store(text, bytes)
	return uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
}

func textAt(address uintptr) string {
	start := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	length := 0
	for *(*byte)(unsafe.Add(start, length)) != 0 {
		length++
	}
	return string(unsafe.Slice((*byte)(start), length))
}
