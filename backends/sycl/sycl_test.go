package sycl

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func probe(settings map[string]string) error {
	return New(func(asked string) string { return settings[asked] }).Probe()
}

func TestUnavailable(t *testing.T) {
	const nowhere = "/nowhere/dpctl/libDPCTLSyclInterface.so"
	for _, each := range []struct {
		settings map[string]string
		tried    []string
		words    string
	}{
		{map[string]string{LibrarySetting: nowhere}, []string{nowhere}, nowhere + ": cannot open shared object file"},
		{map[string]string{LibrarySetting: "libc.so.6", PackageSetting: "/nowhere"}, []string{"libc.so.6"},
			"lacks DPCTLCString_Delete"},
	} {
		err := probe(each.settings)
		var absent *backends.UnavailableError
		require.ErrorAs(t, err, &absent)
		assert.Contains(t, absent.Reason, each.words)
		assert.Equal(t, each.tried, absent.Tried)
	}
	b := New(func(asked string) string { return map[string]string{PackageSetting: "/nowhere/dpctl"}[asked] })
	assert.Equal(t, []string{"libDPCTLSyclInterface.so", nowhere}, b.names())
}

func TestKindsOfDevicesInTheirOrder(t *testing.T) {
	none := map[backends.Allocator]bool{backends.SYCLDevice: true, backends.SYCLShared: true, backends.SYCLHost: true}
	one := map[backends.Allocator]bool{backends.SYCLShared: true}
	list := []*device{{kind: typeGPU, lacks: none}, {kind: typeCPU}, {kind: typeAccelerator}, {kind: 1 << 3},
		{kind: typeGPU, lacks: one}}
	slices.SortStableFunc(list, func(a, b *device) int { return a.rank() - b.rank() })
	var names []string
	for _, d := range list {
		names = append(names, d.kindName())
	}
	assert.Equal(t, []string{"gpu", "accelerator", "cpu", "other", "gpu"}, names)
}

func TestProcessors(t *testing.T) {
	b := &Backend{devices: []*device{{kind: typeGPU | typeCPU}, {kind: typeCPU}, {kind: typeAccelerator}}}
	for number, is := range map[int]bool{-1: false, 0: false, 1: true, 2: false, 3: false} {
		assert.Equal(t, is, b.OnProcessor(number), number)
	}
}

func TestNamesOfCodes(t *testing.T) {
	for code, text := range map[int]string{1: "errc::runtime", 8: "errc::invalid", 14: "errc::backend_mismatch",
		0: "an unknown code", 99: "an unknown code", -1: "an unknown code"} {
		assert.Equal(t, text, nameOf(code))
	}
}

func TestADeviceWithoutMemoryHasNoAllocator(t *testing.T) {
	b, _ := found(t)
	b.devices[0].lacks[backends.SYCLShared] = true
	require.ErrorIs(t, b.Supports(backends.SYCLShared, 0), backends.ErrUnavailable)
	_, err := b.Allocate(backends.Request{Allocator: backends.SYCLShared, Size: 1})
	require.ErrorIs(t, err, backends.ErrUnavailable)
	assert.ErrorContains(t, err, "has no aspect usm_shared_allocations, for allocator sycl_shared")
	require.NoError(t, b.Supports(backends.SYCLHost, 0))
	facts, err := b.Describe(0)
	require.NoError(t, err)
	assert.Equal(t, [2]string{"lacks", "sycl_shared"}, facts[len(facts)-1])
}
