//go:build trial

package trial

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
)

var _ backendtest.Device = (*Backend)(nil)

func newBackend(devices, threads string) *Backend {
	settings := map[string]string{DevicesSetting: devices, ThreadsSetting: threads}
	return New(func(name string) string { return settings[name] })
}

func assertClean(t *testing.T, b *Backend) {
	t.Helper()
	b.Finish()
	assert.Empty(t, b.Violations())
	streams, events := b.LiveHandles()
	assert.Zero(t, streams+events)
}

func TestConformance(t *testing.T) {
	for _, devices := range []string{"1", "3"} {
		for _, threads := range []string{"0", "2"} {
			t.Run(devices+" devices, "+threads+" threads", func(t *testing.T) {
				b := newBackend(devices, threads)
				backendtest.Run(t, b, backendtest.Options{LargestSize: 1 << 17})
				assertClean(t, b)
			})
		}
	}
}

func TestUnavailable(t *testing.T) {
	for _, devices := range []string{"0", "none"} {
		assert.ErrorIs(t, newBackend(devices, "").Probe(), backends.ErrUnavailable)
	}
}

// take is memory of 100 bytes on device 0.
func take(t *testing.T, b *Backend, a backends.Allocator) backends.Region {
	t.Helper()
	at, err := b.Allocate(backends.Request{Allocator: a, Size: 100})
	require.NoError(t, err)
	return backends.Region{Address: at, Allocator: a}
}

func TestMisuseIsNoted(t *testing.T) {
	for words, misuse := range map[string]func(b *Backend, at backends.Region) error{
		"a fill is still to run": func(b *Backend, at backends.Region) error {
			_ = b.Fill(at, []byte{1}, 100, 0)
			return b.Free(at, 100, 0)
		},
		"Map: a fill is still to run": func(b *Backend, at backends.Region) error {
			_ = b.Fill(at, []byte{1}, 100, 0)
			_, err := b.Map(at, 100, true)
			return err
		},
		"Fill: trial:0@": func(b *Backend, at backends.Region) error {
			_, _ = b.Map(at, 100, false)
			return b.Fill(at, []byte{1}, 100, 0)
		},
		"is mapped": func(b *Backend, at backends.Region) error {
			_, _ = b.Map(at, 100, false)
			return b.Free(at, 100, 0)
		},
		"is not mapped to": func(b *Backend, at backends.Region) error {
			host, _ := b.Map(at, 100, false)
			_ = b.Unmap(at, host)
			return b.Unmap(at, host)
		},
		"no allocation": func(b *Backend, at backends.Region) error {
			_ = b.Free(at, 100, 0)
			return b.Free(at, 100, 0)
		},
		"no 101 bytes": func(b *Backend, at backends.Region) error { return b.Fill(at, []byte{1}, 101, 0) },
		"is no stream": func(b *Backend, at backends.Region) error { return b.Fill(at, []byte{1}, 1, 2) },
	} {
		b := newBackend("1", "0")
		require.NoError(t, b.Probe())
		var failed *backends.DeviceError
		require.ErrorAs(t, misuse(b, take(t, b, backends.Trial)), &failed, words)
		require.Len(t, b.Violations(), 1, words)
		assert.Contains(t, b.Violations()[0], words)
	}
}

// Without barriers work on one queue runs in any order, so that what relies on one is found.
func TestQueuesKeepNoOrder(t *testing.T) {
	b := newBackend("1", "0")
	require.NoError(t, b.Probe())
	q := b.devices[0].queue
	swapped := 0
	for range 100 {
		var order []int
		first := b.enqueue(q, &item{run: func() { order = append(order, 1) }})
		second := b.enqueue(q, &item{run: func() { order = append(order, 2) }})
		b.finish(first, second)
		swapped += order[0] - 1
	}
	assert.NotZero(t, swapped)
	assert.NotEqual(t, 100, swapped)
}
