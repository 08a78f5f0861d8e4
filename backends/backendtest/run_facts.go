package backendtest

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// testFacts compares what the table of allocators says with what the backend can do.
func (s suite) testFacts(t *testing.T) {
	facts := s.a.Facts()
	mapper, ok := backends.As[backends.Mapper](s.b)
	if facts.Mapped {
		assert.True(t, ok && mapper.Maps(s.a), "the memory must be mapped, and cannot be")
	}
	if _, ok := backends.As[backends.NativeHandles](s.b); facts.Opaque {
		assert.True(t, ok, "addresses are opaque, and there are no handles")
	}
	if _, ok := backends.As[backends.Exporter](s.b); facts.Exportable {
		assert.True(t, ok, "the memory can be exported, and nobody does")
	}
}

// testReach has the host use memory that the backend says it reaches, and asks who reaches the host's.
func (s suite) testReach(t *testing.T) {
	if able, ok := backends.As[backends.HostReacher](s.b); ok {
		region := s.allocate(t, 5000, true, 0)
		if s.wait(t, 0); able.HostReaches(region) {
			host, data := hostBytes(region.Address, 5000), make([]byte, 5000)
			equal(t, data, host, "what the device has written")
			randomBytes(data)
			copy(host, data)
			equal(t, data, s.read(t, region, 5000, 0), "what the host has written")
		}
	}
	able, ok := backends.As[backends.Reacher](s.b)
	if !ok || s.device == backends.HostDevice {
		return
	}
	elsewhere := make([]byte, 64)
	is, err := able.Reaches(s.device,
		backends.Region{Address: addressOf(elsewhere), Allocator: backends.Malloc, Device: backends.HostDevice})
	require.NoError(t, err)
	assert.False(t, is, "memory that nobody on the device has")
	runtime.KeepAlive(elsewhere)
}

// testExport opens exported memory again, as another process does.
func (s suite) testExport(t *testing.T) {
	exporter, ok := backends.As[backends.Exporter](s.b)
	if !ok || !s.a.Facts().Exportable {
		return
	}
	region := s.allocate(t, 5000, true, 0)
	handle, offset, err := exporter.Export(shifted(region, 100))
	require.NoError(t, err)
	assert.Equal(t, 100, offset)
	opened, err := exporter.Import(handle, s.device, 1)
	require.NoError(t, err)
	assert.NotEqual(t, region.Address, opened.Address)
	data := make([]byte, 5000)
	randomBytes(data)
	s.write(t, region, data, 0)
	equal(t, data, s.read(t, opened, 5000, 0), "what the maker has written")
	randomBytes(data)
	s.write(t, opened, data, 0)
	require.NoError(t, exporter.Close(opened))
	equal(t, data, s.read(t, region, 5000, 0), "what the other one has written")
	_, err = exporter.Import(handle[:len(handle)/2], s.device, 1)
	assert.Error(t, err)
}

func (s suite) testMapping(t *testing.T) {
	mapper, ok := backends.As[backends.Mapper](s.b)
	if !ok || !mapper.Maps(s.a) {
		return
	}
	for _, size := range s.sizes() {
		region := s.allocate(t, size, false, 0)
		data := make([]byte, size)
		randomBytes(data)
		s.write(t, region, data, 0)
		for range 3 {
			at, err := mapper.Map(region, size, true)
			require.NoError(t, err)
			host := hostBytes(at, size)
			equal(t, data, host, "%d bytes that the device has written", size)
			randomBytes(host)
			copy(data, host)
			require.NoError(t, mapper.Unmap(region, at))
			equal(t, data, s.read(t, region, size, 0), "%d bytes that the host has written", size)
			half := (size + 1) / 2
			require.NoError(t, s.b.Fill(region, []byte{7}, half, 0))
			copy(data, repeated(7, half))
			s.wait(t, 0)
		}
		at, err := mapper.Map(region, size, false)
		require.NoError(t, err)
		equal(t, data, hostBytes(at, size), "%d bytes to read", size)
		require.NoError(t, mapper.Unmap(region, at))
	}
	part := s.allocate(t, 300, true, 0)
	s.wait(t, 0)
	at, err := mapper.Map(shifted(part, 100), 100, true)
	require.NoError(t, err)
	fill(hostBytes(at, 100), 9)
	require.NoError(t, mapper.Unmap(shifted(part, 100), at))
	got := s.read(t, part, 300, 0)
	equal(t, repeated(0, 100), got[:100], "before what was mapped")
	equal(t, repeated(9, 100), got[100:200], "what was mapped")
	equal(t, repeated(0, 100), got[200:], "behind what was mapped")
}

func (s suite) testNativeHandle(t *testing.T) {
	native, ok := backends.As[backends.NativeHandles](s.b)
	if !ok || !s.a.Facts().Opaque {
		return
	}
	first, second := s.allocate(t, 100, false, 0), s.allocate(t, 100, false, 0)
	mine, offset, err := native.NativeHandle(first)
	require.NoError(t, err)
	assert.NotZero(t, mine)
	assert.Zero(t, offset)
	again, offset, err := native.NativeHandle(shifted(first, 40))
	require.NoError(t, err)
	assert.Equal(t, mine, again)
	assert.Equal(t, 40, offset)
	other, _, err := native.NativeHandle(second)
	require.NoError(t, err)
	assert.NotEqual(t, mine, other)
}

// testIdentities asks twice for each device.
func testIdentities(t *testing.T, b backends.Backend, count int) {
	able, ok := backends.As[backends.Identified](b)
	if !ok {
		return
	}
	seen := map[backends.UUID]int{}
	for device := range count {
		for range 2 {
			id, err := able.Identity(device)
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			require.NoError(t, err)
			assert.NotZero(t, id)
			if before, known := seen[id]; known {
				assert.Equal(t, before, device, "%s is that of two devices", id)
			}
			seen[id] = device
		}
	}
}

// testContext compares what is located with the context that the backend works in.
func (s suite) testContext(t *testing.T) {
	contexts, ok := backends.As[backends.Contexts](s.b)
	locator, locates := backends.As[backends.Locator](s.b)
	if !ok || !locates || s.a.Kind() != backends.DeviceOnly {
		return
	}
	own, err := contexts.Context(s.device)
	require.NoError(t, err)
	assert.NotZero(t, own)
	found, err := locator.Locate(s.allocate(t, 100, false, 0).Address)
	require.NoError(t, err)
	if found.Context != 0 {
		assert.Equal(t, own, found.Context)
	}
}

// testStaging copies as each choice has it, and finds the choice in the report.
func (s suite) testStaging(t *testing.T) {
	stager, ok := backends.As[backends.Stager](s.b)
	if !ok || s.device < 0 {
		return
	}
	const size = 600_001 // the smallest that measuring may choose for is 512 KiB
	staging := stager.Staging()
	region := s.allocate(t, size, false, 0)
	data := make([]byte, size)
	for _, c := range []backends.StagingChoice{{From: 1, Threads: 1}, {From: -1, Threads: 1}, {From: size, Threads: 3},
		{From: size + 1, Threads: 2}, {}} {
		staging.Tune(s.device, true, c)
		staging.Tune(s.device, false, c)
		randomBytes(data)
		s.write(t, region, data, 0)
		equal(t, data, s.read(t, region, size, 0), "what was written")
		seen := map[string]bool{}
		for _, f := range staging.Report(s.device) {
			assert.False(t, seen[f.Name] || f.Name == "", "%+v", f)
			seen[f.Name] = true
			if f.Name == "tuning" {
				assert.Equal(t, "measuring", f.Source)
			}
		}
		assert.True(t, seen["tuning"])
	}
	if trimmer, ok := backends.As[backends.Trimmer](s.b); ok {
		assert.NoError(t, trimmer.Trim())
	}
}
