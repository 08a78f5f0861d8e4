package opencl

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func probe(variable, value string) error {
	return New(func(asked string) string {
		if asked == variable {
			return value
		}
		return ""
	}).Probe()
}

func TestUnavailable(t *testing.T) {
	for _, each := range []struct{ variable, value, words string }{
		{LibrarySetting, "/nowhere/libOpenCL.so", "/nowhere/libOpenCL.so: cannot open shared object file"},
		{LibrarySetting, "libc.so.6", "lacks clGetPlatformIDs"},
		{MemorySetting, "fastest", `HAMR_OPENCL_MEMORY is "fastest": accepted are coarse, fine, usm`},
	} {
		err := probe(each.variable, each.value)
		var absent *backends.UnavailableError
		require.ErrorAs(t, err, &absent)
		assert.Contains(t, absent.Reason, each.words)
		if each.variable == LibrarySetting {
			assert.Equal(t, []string{each.value}, absent.Tried)
		} else {
			assert.Equal(t, []string{"libOpenCL.so.1", "libOpenCL.so"}, absent.Tried)
		}
	}
}

func TestKindsOfDevicesInTheirOrder(t *testing.T) {
	kinds := []uint64{deviceTypeCPU, deviceTypeAccelerator, deviceTypeGPU, 1 << 4, deviceTypeGPU | 1}
	var names []string
	slices.SortStableFunc(kinds, func(a, b uint64) int { return (&device{kind: a}).rank() - (&device{kind: b}).rank() })
	for _, kind := range kinds {
		names = append(names, (&device{kind: kind}).kindName())
	}
	assert.Equal(t, []string{"gpu", "gpu", "accelerator", "cpu", "other"}, names)
}

func TestProcessors(t *testing.T) {
	b := &Backend{devices: []*device{{kind: deviceTypeGPU | deviceTypeCPU}, {kind: deviceTypeCPU | 1},
		{kind: deviceTypeAccelerator}}}
	for number, is := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 3: false} {
		assert.Equal(t, is, b.OnProcessor(number), number)
	}
}

// Only a call that allocates says by these codes that memory ran out.
func TestOutOfMemory(t *testing.T) {
	r := backends.Request{Allocator: backends.OpenCLDevice, Device: 3, Size: 5}
	var full *backends.OutOfMemoryError
	var failed *backends.DeviceError
	for code, ranOut := range map[int32]bool{-4: true, -5: true, -6: true, -61: true, -30: false, -34: false,
		-9999: false} {
		err := outOfMemory(code, "clDeviceMemAllocINTEL", r)
		if !ranOut {
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, int(code), failed.Code)
			continue
		}
		require.ErrorAs(t, err, &full)
		assert.Equal(t, []int{3, 5}, []int{full.Device, full.Size})
		assert.Contains(t, full.Detail, nameOf(code))
	}
	assert.ErrorContains(t, failure("clFinish", -5, ""), "opencl: clFinish failed with CL_OUT_OF_RESOURCES (-5)")
}

func TestADeviceWithoutMemoryHasNoAllocator(t *testing.T) {
	b := openWith(t, usmMemory)
	b.devices[0].memory = noMemory
	for _, a := range []backends.Allocator{backends.OpenCLDevice, backends.OpenCLSVM} {
		require.ErrorIs(t, b.Supports(a, 0), backends.ErrUnavailable)
		_, err := b.Allocate(backends.Request{Allocator: a, Size: 1})
		require.ErrorIs(t, err, backends.ErrUnavailable)
	}
	facts, err := b.Describe(0)
	require.NoError(t, err)
	assert.Equal(t, [2]string{"lacks", "opencl_device, opencl_svm"}, facts[len(facts)-1])
}
