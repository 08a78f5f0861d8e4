package cuda

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/pool"
)

var buildFolder string

func TestMain(m *testing.M) {
	var err error
	if buildFolder, err = os.MkdirTemp("", "hamr-emulator-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(buildFolder)
	os.Exit(code)
}

// builtEmulator is the emulator's file, or "" where there is no C compiler.
var builtEmulator = sync.OnceValues(func() (string, error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	// The first word of a command, such as "python3 -m ziglang cc".
	if _, err := exec.LookPath(strings.Fields(compiler)[0]); err != nil {
		return "", nil
	}
	if built := os.Getenv(builtSetting); built != "" {
		return built, nil // by the process that has started this one
	}
	file := filepath.Join(buildFolder, "emulator.so")
	build := exec.Command("sh", "../../tests/emulator/build.sh", file)
	// Nothing else in the process may take it for the driver.
	build.Env = append(os.Environ(), "SONAME=libhamr-emulator.so")
	if output, err := build.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(output), Err: err}
	}
	return file, os.Setenv(builtSetting, file)
})

const builtSetting = "HAMR_TEST_BUILT_EMULATOR"

// newEmulator returns the path of an emulator that nobody has loaded yet: the
// loader tells libraries apart by file, so each test has one of its own.
func newEmulator(t testing.TB) string {
	t.Helper()
	file, err := builtEmulator()
	require.NoError(t, err)
	if file == "" {
		t.Skip("no C compiler to build the emulator with")
	}
	code, err := os.ReadFile(file)
	require.NoError(t, err)
	own := filepath.Join(t.TempDir(), "libemulator.so")
	require.NoError(t, os.WriteFile(own, code, 0o700))
	return own
}

// controls are the emulator's functions for tests.
type controls struct {
	Fail        uintptr `dl:"emulator_fail"`
	StopFailing uintptr `dl:"emulator_stop_failing"`
	Reset       uintptr `dl:"emulator_reset"`
	Finish      uintptr `dl:"emulator_finish"`
	Live        uintptr `dl:"emulator_live"`
	Pending     uintptr `dl:"emulator_pending"`
	Calls       uintptr `dl:"emulator_calls"`
	Violations  uintptr `dl:"emulator_violations"`
	Violation   uintptr `dl:"emulator_violation"`
}

// foreign is what of the driver tests need to play another library.
type foreign struct {
	CtxCreate        uintptr `dl:"cuCtxCreate_v2"`
	CtxDestroy       uintptr `dl:"cuCtxDestroy_v2"`
	CtxRelease       uintptr `dl:"cuDevicePrimaryCtxRelease_v2"`
	PoolGetAttribute uintptr `dl:"cuMemPoolGetAttribute"`
	ModuleUnload     uintptr `dl:"cuModuleUnload"`
}

// rig is a backend over an emulator of its own, or over the driver of this machine,
// which has no controls.
type rig struct {
	*Backend
	c       controls
	foreign foreign
}

type settings map[string]string

// emulate returns a backend that has been probed. Settings that start with
// HAMR_EMULATOR go to the emulator. The test fails for what it leaves behind.
func emulate(t testing.TB, s settings) *rig {
	t.Helper()
	stayOnThread(t)
	r := loadEmulated(t, s)
	require.NoError(t, r.Probe())
	t.Cleanup(func() { r.assertClean(t) })
	return r
}

// stayOnThread keeps a test on one thread of the system's: on another one the per-thread stream is another.
func stayOnThread(t testing.TB) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
}

func loadEmulated(t testing.TB, s settings) *rig {
	t.Helper()
	path := newEmulator(t)
	all := settings{LibrarySetting: path, CUPTISetting: path}
	maps.Copy(all, s)
	for name, value := range all {
		t.Setenv(name, value)
	}
	library, err := dl.Open([]string{path}, "")
	require.NoError(t, err)
	r := &rig{Backend: New(func(name string) string { return all[name] })}
	require.NoError(t, dl.Bind(library, &r.c))
	require.NoError(t, dl.Bind(library, &r.foreign))
	return r
}

// onEachDriver runs a test over the emulator, and over the driver of this machine
// if there is one with as many devices.
func onEachDriver(t *testing.T, devices int, test func(t *testing.T, r *rig)) {
	t.Run("emulator", func(t *testing.T) { test(t, emulate(t, withDevices(devices))) })
	t.Run("driver", func(t *testing.T) {
		r := openDriver(t, nil)
		if len(r.devices) < devices {
			t.Skipf("%d devices", len(r.devices))
		}
		test(t, r)
		assert.Zero(t, r.substitutes.count.Load())
	})
}

func openDriver(t *testing.T, s settings) *rig {
	t.Helper()
	stayOnThread(t)
	r := &rig{Backend: New(func(name string) string { return s[name] })}
	err := r.Probe()
	if errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	library, err := dl.Open(libraryNames(), "")
	require.NoError(t, err)
	require.NoError(t, dl.Bind(library, &r.foreign))
	return r
}

func (r *rig) emulated() bool { return r.c.Fail != 0 }

func cText(text string) uintptr {
	bytes := append([]byte(text), 0)
	kept.Store(text, bytes)
	return uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
}

var kept sync.Map // what C functions were given

func (r *rig) live(what string) int { return int(int32(dl.Call(r.c.Live, cText(what)))) }

// calls counts the calls of an entry point.
func (r *rig) calls(symbol string) int { return int(int32(dl.Call(r.c.Calls, cText(symbol)))) }

func (r *rig) fail(symbol string, nth, code int) {
	dl.Call(r.c.Fail, cText(symbol), uintptr(nth), uintptr(code))
}

func (r *rig) stopFailing() { dl.Call(r.c.StopFailing) }

func (r *rig) violations() (list []string) {
	for i := range int(int32(dl.Call(r.c.Violations))) {
		text := dl.Call(r.c.Violation, uintptr(i))
		list = append(list, textAt(text))
	}
	return list
}

func textAt(address uintptr) string {
	start := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	length := 0
	for *(*byte)(unsafe.Add(start, length)) != 0 {
		length++
	}
	return string(unsafe.Slice((*byte)(start), length))
}

// assertClean gives back what the backend keeps for reuse and fails t for anything
// that is left, and for misuse.
func (r *rig) assertClean(t testing.TB) {
	t.Helper()
	r.stopFailing()
	dl.Call(r.c.Finish)
	assert.NoError(t, r.trimStaging())
	var pools []*pool.Pool
	for _, d := range r.devices {
		pools = append(pools, d.reused.Load())
		for _, p := range d.tagged.all() {
			pools = append(pools, p.Pool)
		}
	}
	_, err := r.trimSpare()
	assert.NoError(t, err)
	for _, p := range append(pools, r.pinned.Load()) { // last, since contents of the others are there
		if p != nil {
			assert.Zero(t, p.Statistics().Lent, "memory leaks")
			assert.NoError(t, p.Trim())
		}
	}
	assert.Zero(t, r.live("memory"), "memory leaks")
	assert.Zero(t, r.substitutes.count.Load())
	for _, d := range r.devices {
		if d.context.Load() != 0 {
			r.close(t, d)
		}
	}
	for _, what := range []string{"events", "streams", "pools", "modules", "contexts"} {
		assert.Zero(t, r.live(what), "%s leak", what)
	}
	assert.Empty(t, r.violations())
}

func (r *rig) close(t testing.TB, d *device) {
	t.Helper()
	v, err := r.enterContext(d.context.Load())
	require.NoError(t, err)
	for event := d.events.take(); event != 0; event = d.events.take() {
		assert.NoError(t, r.call(r.driver.EventDestroy, event))
	}
	for _, s := range d.perThread {
		if s != 0 {
			assert.NoError(t, r.DestroyStream(d.number, s))
		}
	}
	if pool := d.pool.Load(); pool != 0 {
		assert.NoError(t, r.call(r.driver.MemPoolDestroy, pool))
	}
	for _, module := range d.kernels.modules {
		assert.NoError(t, r.call(r.foreign.ModuleUnload, module))
	}
	v.leave()
	assert.NoError(t, r.call(r.foreign.CtxRelease, uintptr(d.handle)))
}

// newContext plays a library with a context of its own, which is not current.
func (r *rig) newContext(t testing.TB, device int) uintptr {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	v := scratch()
	require.NoError(t, r.call(r.foreign.CtxCreate, v.slot(0), 0, uintptr(device)))
	require.NoError(t, r.call(r.driver.CtxPopCurrent, v.slot(1)))
	context := uintptr(v.out[0])
	t.Cleanup(func() { assert.NoError(t, r.call(r.foreign.CtxDestroy, context)) })
	return context
}

// newForeignStream returns a stream that the backend did not make.
func (r *rig) newForeignStream(t testing.TB, context uintptr) backends.Stream {
	t.Helper()
	v, err := r.enterContext(context)
	require.NoError(t, err)
	defer v.leave()
	require.NoError(t, r.call(r.driver.StreamCreate, v.slot(0), nonBlocking))
	stream := backends.Stream(v.out[0])
	t.Cleanup(func() { assert.NoError(t, r.DestroyStream(0, stream)) })
	return stream
}

func (r *rig) current(t testing.TB) uintptr {
	t.Helper()
	v := scratch()
	require.NoError(t, r.call(r.driver.CtxGetCurrent, v.slot(0)))
	return uintptr(v.out[0])
}

func withDevices(count int) settings {
	return settings{"HAMR_EMULATOR_DEVICES": strconv.Itoa(count)}
}
