package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// standIn has a device that is the host, perhaps.
type standIn struct {
	*backendtest.Fake
	onHost bool
}

func (s standIn) OnHost(int) bool { return s.onHost }

func TestTheHostIsNotTheDevice(t *testing.T) {
	for onHost, want := range map[bool]backends.Allocator{false: backends.OpenMP, true: backends.Malloc} {
		fake := backendtest.NewFake(backendtest.FakeOptions{Space: backends.SpaceOpenMP})
		r, err := gobuffer.NewRuntime(host.New(), standIn{fake, onHost})
		require.NoError(t, err)
		assert.Equal(t, want, r.DeviceAllocator())
		assert.Empty(t, fake.Violations())
	}
}
