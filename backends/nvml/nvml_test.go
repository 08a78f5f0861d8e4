package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "hamr-nvml-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// built are the files of the stand-in, new and old; nil where there is no C compiler.
var built = sync.OnceValues(func() (files map[bool]string, err error) {
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if _, err := exec.LookPath(strings.Fields(compiler)[0]); err != nil {
		return nil, nil
	}
	files = map[bool]string{false: filepath.Join(folder, "new.so"), true: filepath.Join(folder, "old.so")}
	for old, file := range files {
		build := exec.Command("sh", "../../tests/pygpu/stand_in/build.sh", file)
		build.Env = os.Environ()
		if old {
			build.Env = append(build.Env, "OLD=1")
		}
		if output, err := build.CombinedOutput(); err != nil {
			return nil, &exec.Error{Name: string(output), Err: err}
		}
	}
	return files, nil
})

// standIn returns a library that is the stand-in, new or old, and that nobody else has loaded, and how
// often that is initialised.
func standIn(t *testing.T, old bool) (l *Library, references func() int) {
	t.Helper()
	files, err := built()
	require.NoError(t, err)
	if files == nil {
		t.Skip("no C compiler to build the stand-in with")
	}
	code, err := os.ReadFile(files[old])
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "libnvml.so")
	require.NoError(t, os.WriteFile(file, code, 0o700))
	l = New(func(string) string { return file })
	return l, func() int {
		found, err := l.open()
		require.NoError(t, err)
		at, err := found.Symbol("nvml_stand_in_references")
		require.NoError(t, err)
		return int(int32(dl.Call(at)))
	}
}

func initialised(t *testing.T, old bool) *Library {
	l, _ := standIn(t, old)
	require.NoError(t, l.Init())
	return l
}

func TestAnAbsentLibraryIsAStatus(t *testing.T) {
	l := New(func(string) string { return "/nowhere/libnvidia-ml.so.1" })
	for _, err := range []error{l.Init(), l.Shutdown(), func() error { _, err := l.DeviceByIndex(0); return err }()} {
		var unavailable *backends.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		assert.Equal(t, []string{"/nowhere/libnvidia-ml.so.1"}, unavailable.Tried)
		assert.Equal(t, LibraryNotFound, StatusOf(err))
	}
	assert.Equal(t, "NVML_ERROR_LIBRARY_NOT_FOUND", LibraryNotFound.String())
	assert.NotEmpty(t, l.Text(LibraryNotFound))
	assert.Equal(t, "NVML_ERROR_77", Status(77).String())
}

func TestInitIsCounted(t *testing.T) {
	l, references := standIn(t, false)
	_, err := l.DeviceCount()
	assert.Equal(t, Uninitialized, StatusOf(err))
	assert.Equal(t, Uninitialized, StatusOf(l.Shutdown()))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			assert.NoError(t, l.Init())
			d, err := l.DeviceByIndex(0)
			assert.NoError(t, err)
			power, err := d.Power()
			assert.NoError(t, err)
			assert.Equal(t, 123456, power)
			assert.NoError(t, l.Shutdown())
		})
	}
	all.Wait()
	assert.Zero(t, references(), "each Init was ended")

	require.NoError(t, l.Init())
	require.NoError(t, l.Init())
	d, err := l.DeviceByIndex(0)
	require.NoError(t, err)
	require.NoError(t, l.Shutdown())
	_, err = d.Power()
	assert.NoError(t, err, "one Init has not ended")
	require.NoError(t, l.Shutdown())
	require.NoError(t, l.Init())
	_, err = d.Power()
	assert.Equal(t, Uninitialized, StatusOf(err), "a handle of before the last Shutdown")
	assert.Equal(t, 1, references())
}

func TestOthersInitCountsForNothing(t *testing.T) {
	l, references := standIn(t, false)
	library, err := l.open()
	require.NoError(t, err)
	at, err := library.Symbol("nvmlInit_v2")
	require.NoError(t, err)
	require.Zero(t, int32(dl.Call(at)))
	assert.Equal(t, 1, references())
	_, err = l.DeviceCount()
	assert.Equal(t, Uninitialized, StatusOf(err))
	require.NoError(t, l.Init())
	require.NoError(t, l.Shutdown())
	assert.Equal(t, 1, references(), "theirs is theirs")
}

func TestAFailedInitCountsForNothing(t *testing.T) {
	l, _ := standIn(t, false)
	t.Setenv("HAMR_NVML_STAND_IN_FAIL", "nvmlInit_v2:18")
	err := l.Init()
	assert.Equal(t, DriverMismatch, StatusOf(err))
	assert.ErrorContains(t, err,
		"nvmlInit_v2 failed with NVML_ERROR_LIB_RM_VERSION_MISMATCH (18): An error of the stand-in")
	_, err = l.DeviceCount()
	assert.Equal(t, Uninitialized, StatusOf(err))
	t.Setenv("HAMR_NVML_STAND_IN_FAIL", "")
	assert.NoError(t, l.Init())
}

func TestFactsOfADevice(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(map[bool]string{true: "old", false: "new"}[old], func(t *testing.T) {
			l := initialised(t, old)
			d, err := l.DeviceByIndex(1)
			require.NoError(t, err)
			same := func(want any) func(got any, err error) {
				return func(got any, err error) {
					t.Helper()
					assert.NoError(t, err)
					assert.Equal(t, want, got)
				}
			}
			text := func(s string, err error) (any, error) { return s, err }
			number := func(n int, err error) (any, error) { return n, err }
			same("580.65.06")(text(l.DriverVersion()))
			same("13.580.65.06")(text(l.Version()))
			same(13000)(number(l.CUDAVersion()))
			same(3)(number(l.DeviceCount()))
			same("Device 1 0")(text(d.Name()))
			same("GPU-68616d72-2d65-6d75-6c61-7465642d3030")(text(d.UUID()))
			same(1)(number(d.Index()))
			same(41)(number(d.Temperature()))
			same(123457)(number(d.Power()))
			same(700000)(number(d.PowerLimit()))
			same(1100)(number(d.Clock(SMClock)))
			same(2200)(number(d.MaxClock(MemoryClock)))
			pci, err := d.PCI()
			id := map[bool]string{true: "0000:01:04.0", false: "00000000:01:04.0"}[old]
			same(PCI{id, 0, 1, 4})(pci, err)
			busy, err := d.Utilization()
			same(Utilization{71, 31})(busy, err)
			memory, err := d.Memory()
			if old {
				same(Memory{949_000, 1_000_000, 51_000, 0, false})(memory, err)
			} else {
				same(Memory{949_000, 1_000_000, 50_000, 1000, true})(memory, err)
			}
			on, err := d.Persistence()
			same(true)(on, err)
			current, pending, err := d.ECC()
			same([]bool{true, false})([]bool{current, pending}, err)
			_, err = d.Serial()
			assert.Equal(t, NotSupported, StatusOf(err))
			assert.ErrorContains(t, err, "nvmlDeviceGetSerial failed with NVML_ERROR_NOT_SUPPORTED (3): Not Supported")
		})
	}
}

func TestLongTextsAreWhole(t *testing.T) {
	d, err := initialised(t, false).DeviceByIndex(2)
	require.NoError(t, err)
	name, err := d.Name()
	assert.NoError(t, err)
	assert.Equal(t, "Device 2 "+strings.Repeat("0", 150), name)
}

func TestDevicesAreFoundByWhatTheyAre(t *testing.T) {
	l := initialised(t, false)
	var id backends.UUID
	copy(id[:], "hamr-emulated-01")
	d, err := l.DeviceByIdentity(id)
	require.NoError(t, err)
	index, err := d.Index()
	assert.NoError(t, err)
	assert.Zero(t, index, "the stand-in has them in the other order")

	d, err = l.DeviceByBusID("0000:01:00.0")
	require.NoError(t, err)
	uuid, err := d.UUID()
	assert.NoError(t, err)
	assert.Equal(t, "GPU-68616d72-2d65-6d75-6c61-7465642d3030", uuid)

	copy(id[:], "hamr-emulated-03")
	part, err := l.DeviceByIdentity(id)
	require.NoError(t, err)
	is, err := part.IsInstance()
	assert.NoError(t, err)
	assert.True(t, is)
	for _, id := range []string{"", "GPU-", "nonsense"} {
		_, err = l.DeviceByUUID(id)
		assert.Equal(t, NotFound, StatusOf(err))
	}
	_, err = l.DeviceByIdentity(backends.UUID{})
	assert.Equal(t, NotFound, StatusOf(err))
	_, err = l.DeviceByIndex(3)
	assert.Equal(t, InvalidArgument, StatusOf(err))
	for _, index := range []int{-1, 1 << 32} {
		_, err = l.DeviceByIndex(index)
		assert.Equal(t, InvalidArgument, StatusOf(err))
	}
	_, err = Device{library: l, handle: 0, era: 1}.Power()
	assert.Equal(t, InvalidArgument, StatusOf(err))
}

func TestInstances(t *testing.T) {
	l := initialised(t, false)
	whole, err := l.DeviceByIndex(2)
	require.NoError(t, err)
	current, pending, err := whole.InstanceMode()
	assert.NoError(t, err)
	assert.True(t, current && pending)
	parts, err := whole.Instances()
	require.NoError(t, err)
	require.Len(t, parts, 2)
	gpu, compute, err := parts[1].InstanceIDs()
	assert.NoError(t, err)
	assert.Equal(t, []int{4, 0}, []int{gpu, compute})
	of, err := parts[1].Whole()
	assert.NoError(t, err)
	assert.Equal(t, whole, of)
	memory, err := parts[0].Memory()
	assert.NoError(t, err)
	assert.EqualValues(t, 1_000_000, memory.Total)
	_, err = parts[0].Utilization()
	assert.Equal(t, NotSupported, StatusOf(err))
	_, err = parts[0].Power()
	assert.Equal(t, NotSupported, StatusOf(err))

	plain, err := l.DeviceByIndex(0)
	require.NoError(t, err)
	_, _, err = plain.InstanceMode()
	assert.Equal(t, NotSupported, StatusOf(err))
	for _, d := range []Device{plain, mustIndex(t, initialised(t, true), 2)} {
		none, err := d.Instances()
		assert.NoError(t, err)
		assert.Empty(t, none)
		is, err := d.IsInstance()
		assert.NoError(t, err)
		assert.False(t, is)
	}
}

func mustIndex(t *testing.T, l *Library, index int) Device {
	d, err := l.DeviceByIndex(index)
	require.NoError(t, err)
	return d
}

func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		name, driver string
		old          bool
		index, part  int
	}{
		{"old", "", true, 0, Absent},
		{"new", "", false, 0, Absent},
		{"530", "530.41.03", false, 0, Absent},
		{"divided", "", false, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("HAMR_NVML_STAND_IN_DRIVER", c.driver)
			d := mustIndex(t, initialised(t, c.old), c.index)
			t.Setenv("HAMR_NVML_STAND_IN_PROCESSES", "1000")
			list, err := d.Processes()
			require.NoError(t, err)
			require.Len(t, list, 1001)
			part := Absent
			if c.part != Absent {
				part = 1
			}
			assert.Equal(t, Process{100, false, 409600, c.part, part}, list[0])
			assert.Equal(t, Process{101, false, Absent, c.part, part}, list[1])
			assert.Equal(t, Process{1099, false, 4096 * 1099, c.part, part}, list[999])
			assert.Equal(t, Process{7, true, 4096 * 7, c.part, part}, list[1000])
			t.Setenv("HAMR_NVML_STAND_IN_PROCESSES", "0")
			list, err = d.Processes()
			assert.NoError(t, err)
			assert.Len(t, list, 1)
		})
	}
}

// What a newer library has given up, its successor says.
func TestSuccessorsOfFunctions(t *testing.T) {
	l := initialised(t, false)
	t.Setenv("HAMR_NVML_STAND_IN_FAIL", "nvmlDeviceGetTemperature:26,nvmlDeviceGetMemoryInfo_v2:25")
	d := mustIndex(t, l, 1)
	degrees, err := d.Temperature()
	assert.NoError(t, err)
	assert.Equal(t, 41, degrees)
	memory, err := d.Memory()
	assert.NoError(t, err)
	assert.Equal(t, Memory{949_000, 1_000_000, 51_000, 0, false}, memory)
	t.Setenv("HAMR_NVML_STAND_IN_FAIL", "nvmlDeviceGetTemperature:15,nvmlDeviceGetMemoryInfo_v2:15")
	_, err = d.Temperature()
	assert.Equal(t, Status(15), StatusOf(err), "a device that is lost has no other way")
	_, err = d.Memory()
	assert.Equal(t, Status(15), StatusOf(err))
}
