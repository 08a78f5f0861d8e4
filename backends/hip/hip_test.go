package hip

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/internal/dl"
)

// versions are of each numbering of memory, with and without a handle of the null stream.
var versions = []string{"50221153", "70012345"}

func TestConformance(t *testing.T) {
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			r := standIn(t, variables{"HAMR_HIP_STAND_IN_VERSION": version, "HAMR_EMULATOR_DEVICES": []string{"2", "1"}[i],
				"HAMR_HIP_KERNELS": []string{"1", "0"}[i]})
			backendtest.Run(t, r.Backend, backendtest.Options{LargestSize: 1 << 20})
		})
	}
}

// TestConformanceOnDriver is over the CUDA driver of this machine, if there is one.
func TestConformanceOnDriver(t *testing.T) {
	driver, err := dl.Open([]string{"libcuda.so.1"}, "")
	if err != nil {
		t.Skip(err)
	}
	all := variables{LibrarySetting: own(t, "stand-in")}
	t.Setenv(driverSetting, driver.Path())
	b := New(func(name string) string { return all[name] })
	if err := b.Probe(); errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	// too much managed memory kills some machines
	allocators := []backends.Allocator{backends.HIP, backends.HIPAsync, backends.HIPHost}
	backendtest.Run(t, b, backendtest.Options{Allocators: allocators, OutOfMemory: 1 << 60})
}

// TestRealRuntime asks AMD's own library, which finds no device where there is none.
func TestRealRuntime(t *testing.T) {
	if _, err := dl.Open(libraries(), ""); err != nil {
		t.Skip(err)
	}
	b := New(func(string) string { return "" })
	err := b.Probe()
	assert.GreaterOrEqual(t, b.DriverVersion(), oldestRuntime, "it has the functions, and tells its version: %v", err)
	if err == nil {
		backendtest.Run(t, b, backendtest.Options{})
		return
	}
	var absent *backends.UnavailableError
	require.ErrorAs(t, err, &absent)
	assert.Equal(t, "hip", absent.Backend)
	assert.Regexp(t, `hipGetDeviceCount.*hipErrorNoDevice`, absent.Reason)
}

// TestKernelsCompileForAMD has AMD's own compiler compile them, which needs no device.
func TestKernelsCompileForAMD(t *testing.T) {
	library, err := dl.Open(libraries(), "")
	if err != nil {
		t.Skip(err)
	}
	for _, architecture := range []string{"gfx90a", "gfx1030"} {
		code, err := compile(library, "--offload-arch="+architecture)
		require.NoError(t, err)
		for _, name := range []string{"hamr_convert", "hamr_convert_line", "hamr_transpose", "hamr_fill", "hamr_copy",
			"hamr_check_blocks", "hamr_settle_blocks", "hamr_copy_blocks", "hamr_copy_indexed"} {
			assert.Contains(t, string(code), name)
		}
	}
	_, err = compile(library, "--offload-arch=gfx90a", "-Werror", "-DHAMR_UNROLL=mistake")
	assert.ErrorContains(t, err, "hiprtcCompileProgram failed with")
	assert.ErrorContains(t, err, "HAMR_UNROLL")
}

// TestConversionsGoByKernels, where the compiler is there and is wanted.
func TestConversionsGoByKernels(t *testing.T) {
	for setting, value := range map[string]string{"": "", "HAMR_HIP_KERNELS": "0",
		"HAMR_HIP_STAND_IN_WITHOUT_COMPILER": "1"} {
		t.Run(setting, func(t *testing.T) {
			r := standIn(t, variables{setting: value, "HAMR_EMULATOR_DEVICES": "1"}.named())
			strided := func(at backends.Address, kind backends.ElementKind) backends.Strided {
				return backends.Strided{Region: backends.Region{Address: at, Allocator: backends.HIP},
					Element: backends.Element{Kind: kind, Size: 4}, Shape: []int{100}, Strides: []int{4}}
			}
			assert.Equal(t, setting == "", r.Converts(strided(0, backends.Float), strided(0, backends.Signed), 0))
			at, err := r.Allocate(backends.Request{Allocator: backends.HIP, Size: 800, Zero: true})
			require.NoError(t, err)
			err = r.Convert(strided(at, backends.Float), strided(at+400, backends.Signed), 0)
			if setting == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, errors.ErrUnsupported)
			}
			require.NoError(t, r.Free(backends.Region{Address: at, Allocator: backends.HIP}, 800, 0))
		})
	}
}

func TestWithoutLibrary(t *testing.T) {
	b := New(func(name string) string { return map[string]string{LibrarySetting: "/nowhere/libamdhip64.so"}[name] })
	var absent *backends.UnavailableError
	require.ErrorAs(t, b.Probe(), &absent)
	assert.Equal(t, []string{"/nowhere/libamdhip64.so"}, absent.Tried)
	assert.Contains(t, absent.Reason, "/nowhere/libamdhip64.so")
	assert.Contains(t, libraries(), "libamdhip64.so.6")
}

func TestOldAndForeignLibraries(t *testing.T) {
	t.Setenv("HAMR_HIP_STAND_IN_VERSION", "40321331")
	for file, words := range map[string]string{
		own(t, "stand-in"): "is of HIP 4.3.21331, and 5.2.0 is needed",
		"libc.so.6":        "lacks hipDriverGetVersion, hipGetErrorName",
	} {
		var absent *backends.UnavailableError
		require.ErrorAs(t, New(func(name string) string {
			return map[string]string{LibrarySetting: file}[name]
		}).Probe(), &absent)
		assert.Contains(t, absent.Reason, words)
	}
}

func TestRuntimesThatTheProcessHas(t *testing.T) {
	const maps = `7f0000000000-7f0000001000 r--p 00000000 08:01 17 /usr/lib/libc.so.6
7f0000002000-7f0000003000 r--p 00000000 08:01 18 /venv/torch/lib/libamdhip64.so
7f0000003000-7f0000004000 r-xp 00001000 08:01 18 /venv/torch/lib/libamdhip64.so
7f0000005000-7f0000006000 r--p 00000000 08:01 19 /opt/my rocm/lib/libamdhip64.so.6.3.60342
7f0000007000-7f0000008000 rw-p 00000000 00:00 0 [heap]
`
	assert.Equal(t, []string{"/venv/torch/lib/libamdhip64.so", "/opt/my rocm/lib/libamdhip64.so.6.3.60342"}, loaded(maps))
}

func TestWhatDevicesAre(t *testing.T) {
	r := standIn(t, variables{"HAMR_EMULATOR_DEVICES": "2", "HAMR_HIP_STAND_IN_VERSION": "60342134"})
	facts, err := r.Describe(1)
	require.NoError(t, err)
	values := map[string]string{}
	for _, fact := range facts {
		values[fact[0]] = fact[1]
	}
	assert.Equal(t, "6.3.42134", values["driver"])
	assert.Regexp(t, `^GPU-[0-9a-f]{16}$`, values["uuid"])
	assert.NotContains(t, values, "lacks")
	assert.Equal(t, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
		uuidText(backends.UUID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}))
	assert.Zero(t, r.Shortcuts(), "its functions are not a CUDA driver's")
}

// TestFailuresHaveNames: the codes are HIP's, and another library's last error is not disturbed by ours.
func TestFailuresHaveNames(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := standIn(t, nil)
	at, err := r.Allocate(backends.Request{Allocator: backends.HIP, Size: 1000})
	require.NoError(t, err)
	region := backends.Region{Address: at, Allocator: backends.HIP}

	r.fail("cuMemsetD8Async", 719)
	var failed *backends.DeviceError
	require.ErrorAs(t, r.Fill(region, []byte{1}, 10, 0), &failed)
	assert.Equal(t, "hip", failed.API)
	assert.Equal(t, "hipMemsetD8Async", failed.Call)
	assert.Equal(t, "hipErrorLaunchFailure", failed.Name)
	assert.Zero(t, int32(dl.Call(r.foreign.PeekAtError)), "what went wrong is the caller's to know")

	dl.Call(r.emulator.StopFailing)
	_, err = r.Allocate(backends.Request{Allocator: backends.HIP, Size: 1 << 46})
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, err, &full)
	assert.Contains(t, err.Error(), "hipErrorOutOfMemory (2)")
	assert.Zero(t, int32(dl.Call(r.foreign.PeekAtError)))
	require.NoError(t, r.Free(region, 1000, 0))
}

// TestCurrentDevice: each thread has its own, which no operation changes.
func TestCurrentDevice(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := standIn(t, variables{"HAMR_EMULATOR_DEVICES": "2"})
	current := func() int {
		number := new(int32)
		require.Zero(t, int32(dl.Call(r.foreign.GetDevice, uintptr(unsafe.Pointer(number)))))
		return int(*number)
	}
	require.Zero(t, int32(dl.Call(r.foreign.SetDevice, 1)))
	for device := range 2 {
		at, err := r.Allocate(backends.Request{Allocator: backends.HIP, Device: device, Size: 100, Zero: true})
		require.NoError(t, err)
		found, err := r.Locate(at + 10)
		require.NoError(t, err)
		assert.Equal(t, device, found.Device)
		assert.Equal(t, backends.HIP, found.Allocator)
		require.NoError(t, r.Free(backends.Region{Address: at, Allocator: backends.HIP, Device: device}, 100, 0))
		assert.Equal(t, 1, current())
	}
	before, err := r.Activate(0)
	require.NoError(t, err)
	assert.Zero(t, current())
	require.NoError(t, r.Restore(before))
	assert.Equal(t, 1, current())
}

// TestForeignStreamsAndMemory: what another library has made.
func TestForeignStreamsAndMemory(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r := standIn(t, variables{"HAMR_EMULATOR_DEVICES": "2", "HAMR_HIP_STAND_IN_VERSION": version})
			require.Zero(t, int32(dl.Call(r.foreign.SetDevice, 1)))
			stream, memory := new(uintptr), new(uintptr)
			require.Zero(t, int32(dl.Call(r.foreign.StreamCreate, uintptr(unsafe.Pointer(stream)), 0)))
			require.Zero(t, int32(dl.Call(r.foreign.Malloc, uintptr(unsafe.Pointer(memory)), 5000)))
			require.Zero(t, int32(dl.Call(r.foreign.SetDevice, 0)))
			device, err := r.StreamDevice(backends.Stream(*stream))
			require.NoError(t, err)
			assert.Equal(t, 1, device)
			_, err = r.StreamDevice(12345)
			assert.ErrorIs(t, err, backends.ErrNoStream)

			found, err := r.Locate(backends.Address(*memory) + 7)
			require.NoError(t, err)
			assert.Equal(t, backends.Region{Address: backends.Address(*memory) + 7, Allocator: backends.HIP, Device: 1},
				found.Region)
			assert.Equal(t, backends.Address(*memory), found.Base)
			assert.Equal(t, 5000, found.Size)
			region := found.Region
			region.Address = found.Base
			require.NoError(t, r.Fill(region, []byte{1, 2, 3}, 1000, backends.Stream(*stream)))
			require.NoError(t, r.Synchronize(1, backends.Stream(*stream)))
			require.NoError(t, r.Free(region, 0, 0))
			require.NoError(t, r.DestroyStream(1, backends.Stream(*stream)))
		})
	}
}
