package cuda

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

func unavailable(t *testing.T, b *Backend) *backends.UnavailableError {
	t.Helper()
	err := b.Probe()
	var absent *backends.UnavailableError
	require.ErrorAs(t, err, &absent)
	assert.Equal(t, "cuda", absent.Backend)
	assert.Same(t, err, b.Probe(), "Probe remembers its answer")
	return absent
}

type noLibrary struct{}

func (noLibrary) Load(name string) (dl.Library, error) {
	return nil, errors.New(name + ": cannot open shared object file")
}

func TestWithoutLibrary(t *testing.T) {
	b := New(func(string) string { return "" })
	b.loader = noLibrary{}
	absent := unavailable(t, b)
	assert.Equal(t, []string{"libcuda.so.1", "libcuda.so"}, absent.Tried[:2])
	assert.Contains(t, absent.Reason, "libcuda.so.1: cannot open shared object file")
	assert.Zero(t, b.DriverVersion())
	assert.Zero(t, b.Shortcuts())
}

func TestOverriddenLibraryIsTheOnlyOneTried(t *testing.T) {
	absent := unavailable(t, New(func(name string) string {
		if name == LibrarySetting {
			return "/nowhere/libcuda.so"
		}
		return ""
	}))
	assert.Equal(t, []string{"/nowhere/libcuda.so"}, absent.Tried)
}

func TestLibraryThatIsNoDriver(t *testing.T) {
	absent := unavailable(t, New(func(name string) string {
		if name == LibrarySetting {
			return "libc.so.6"
		}
		return ""
	}))
	assert.Contains(t, absent.Reason, "lacks cuInit, cuDriverGetVersion")
}

// lacking is a library without some of its symbols.
type lacking struct {
	dl.Library
	absent []string
}

func (l lacking) Symbol(name string) (uintptr, error) {
	if slices.Contains(l.absent, name) {
		return 0, errors.New("undefined symbol: " + name)
	}
	return l.Library.Symbol(name)
}

func (l lacking) Load(name string) (_ dl.Library, err error) {
	l.Library, err = dl.System.Load(name)
	return l, err
}

func TestMissingSymbolsAreNamed(t *testing.T) {
	r := loadEmulated(t, nil)
	r.loader = lacking{absent: []string{"cuMemPoolCreate", "cuMemFreeAsync", "cuDeviceGetUuid_v2"}}
	assert.Contains(t, unavailable(t, r.Backend).Reason, "lacks cuMemPoolCreate, cuMemFreeAsync")
}

func TestWithoutOptionalSymbols(t *testing.T) {
	r := loadEmulated(t, nil)
	r.loader = lacking{absent: []string{"cuDeviceGetUuid_v2"}}
	require.NoError(t, r.Probe())
	facts, err := r.Describe(0)
	require.NoError(t, err)
	assert.Contains(t, facts, [2]string{"uuid", "GPU-68616d72-2d65-6d75-6c61-7465642d3030"})
}

func TestOldDriver(t *testing.T) {
	r := loadEmulated(t, settings{"HAMR_EMULATOR_VERSION": "11010"})
	r.loader = lacking{absent: []string{"cuMemPoolCreate"}}
	assert.Contains(t, unavailable(t, r.Backend).Reason, "is of CUDA 11.1, and 11.2 is needed")
}

func TestWithoutDevices(t *testing.T) {
	r := loadEmulated(t, withDevices(0))
	assert.Contains(t, unavailable(t, r.Backend).Reason, "cuInit failed with CUDA_ERROR_NO_DEVICE (100)")
}

func TestFailuresOfProbe(t *testing.T) {
	for _, symbol := range []string{"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet"} {
		r := loadEmulated(t, nil)
		r.fail(symbol, 1, 802)
		assert.Contains(t, unavailable(t, r.Backend).Reason, symbol+" failed with CUDA_ERROR_SYSTEM_NOT_READY (802)")
	}
}

func TestForkedChild(t *testing.T) {
	r := loadEmulated(t, nil)
	r.fail("cuInit", 1, notInitialized)
	err := r.Probe()
	var forked *backends.ForkedError
	require.ErrorAs(t, err, &forked)
	assert.Equal(t, backends.ForkedError{Backend: "cuda", Reason: "CUDA_ERROR_NOT_INITIALIZED (3)"}, *forked)
	assert.NotErrorIs(t, err, backends.ErrUnavailable)
}

func TestNamesOfCodes(t *testing.T) {
	r := emulate(t, nil)
	assert.Equal(t, "CUDA_ERROR_ILLEGAL_ADDRESS", r.nameOf(700))
	assert.Equal(t, "CUDA_ERROR_4711", r.nameOf(4711))
	assert.Equal(t, "CUDA_ERROR_4711", New(nil).nameOf(4711), "before there is a driver")
	assert.Equal(t, "an unknown function", r.symbolAt(1))
}

func TestDescribe(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		facts, err := r.Describe(0)
		require.NoError(t, err)
		values := map[string]string{}
		var names []string
		for _, fact := range facts {
			names = append(names, fact[0])
			values[fact[0]] = fact[1]
		}
		t.Log(facts)
		assert.Equal(t, []string{"name", "uuid", "compute_capability", "memory", "multiprocessors", "pci_bus_id", "driver",
			"copy_blocks"}, names)
		assert.Regexp(t, `^GPU(-[0-9a-f]+){5}$`, values["uuid"])
		assert.Regexp(t, `^[0-9]+\.[0-9]$`, values["compute_capability"])
		assert.Regexp(t, `^[0-9]+\.[0-9]$`, values["driver"])
		assert.Regexp(t, `^[0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\.0$`, values["pci_bus_id"])
		assert.Contains(t, values["copy_blocks"], "by a kernel of 4 blocks of threads")
		assert.NotZero(t, r.Shortcuts().CurrentDevice)

		_, err = r.Describe(64)
		assert.ErrorContains(t, err, "no device 64")
	})
}
