//go:build trial

package trial

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/internal/staging"
)

var _ backendtest.Device = (*Backend)(nil)

// small makes staged copies of nearly all.
var small = map[string]string{staging.ChunkSetting: "48", staging.ThreadsSetting: "2", staging.PinnedSetting: "500"}

func newBackend(devices, threads string) *Backend { return newStaging(devices, threads, nil) }

func newStaging(devices, threads string, more map[string]string) *Backend {
	settings := map[string]string{DevicesSetting: devices, ThreadsSetting: threads, staging.TuningSetting: "0"}
	maps.Copy(settings, more)
	return New(func(name string) string { return settings[name] })
}

func assertClean(t *testing.T, b *Backend) {
	t.Helper()
	assert.NoError(t, b.Trim())
	b.Finish()
	assert.Empty(t, b.arenas)
	assert.Empty(t, b.marks)
	assert.Empty(t, b.Violations())
	streams, events := b.LiveHandles()
	assert.Zero(t, streams+events)
}

func TestConformance(t *testing.T) {
	for _, devices := range []string{"1", "3"} {
		for _, threads := range []string{"0", "2"} {
			for _, more := range []map[string]string{nil, small} {
				t.Run(fmt.Sprint(devices, " devices, ", threads, " threads, ", len(more), " settings"), func(t *testing.T) {
					b := newStaging(devices, threads, more)
					backendtest.Run(t, b, backendtest.Options{LargestSize: 1 << 17})
					assert.NotZero(t, b.CallCount("StageUp"))
					assert.LessOrEqual(t, b.Staging().(*staging.Engine).Held(), 1<<20)
					assertClean(t, b)
				})
			}
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

// TestStagedCopies has each call of theirs fail once, and page-locked memory taken away while copies
// from it are still to run.
func TestStagedCopies(t *testing.T) {
	failed := errors.New("broken")
	for _, call := range []string{"", "LockPages", "StageUp", "StageDown", "StageDone"} {
		for nth := 1; nth < 9; nth++ {
			b := newStaging("1", "0", small)
			require.NoError(t, b.Probe())
			at := take(t, b, backends.Trial)
			host, want := make([]byte, 100), bytes.Repeat([]byte{byte(nth)}, 100)
			here := func(data []byte) backends.Region {
				return backends.Region{Address: addressOf(data), Allocator: backends.Malloc, Device: backends.HostDevice}
			}
			if call != "" {
				b.FailAt(call, nth, failed)
			}
			for _, up := range []bool{true, false} {
				to, from := at, here(want)
				if !up {
					to, from = here(host), at
				}
				if _, err := b.Copy(to, from, 100, 0); err != nil {
					assert.ErrorIs(t, err, failed)
				}
			}
			b.StopFailing()
			left, err := b.Copy(at, here(want), 100, 0)
			require.NoError(t, err)
			assert.Equal(t, backends.Writing, left)
			require.NoError(t, b.Trim())
			left, err = b.Copy(here(host), at, 100, 0)
			require.NoError(t, err)
			assert.Equal(t, backends.Complete, left)
			assert.Equal(t, want, host)
			b.Finish()
			require.NoError(t, b.Free(at, 100, 0))
			assertClean(t, b)
		}
	}
}

func TestPageLockedMemoryThatIsGone(t *testing.T) {
	b := newStaging("1", "0", small)
	require.NoError(t, b.Probe())
	data := make([]byte, 100)
	_, err := b.Copy(take(t, b, backends.Trial),
		backends.Region{Address: addressOf(data), Allocator: backends.Malloc, Device: backends.HostDevice}, 100, 0)
	require.NoError(t, err)
	for _, a := range b.arenas {
		a.gone = true
	}
	b.Finish()
	require.NotEmpty(t, b.Violations())
	assert.Contains(t, b.Violations()[0], "page-locked memory that was given back")
}
