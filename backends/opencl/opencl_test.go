package opencl

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
)

// openWith returns the machine's OpenCL, or skips where there is none.
func openWith(t testing.TB, model memoryModel) *Backend {
	t.Helper()
	b := New(func(variable string) string {
		if variable == MemorySetting {
			return modelNames[model]
		}
		return os.Getenv(variable)
	})
	err := b.Probe()
	if errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return b
}

// producing plays somebody who has a cl_event.
type producing struct{ *Backend }

func (p producing) VendorEvent(device int, s backends.Stream) (uintptr, func(), error) {
	q, _, err := p.queueOn("VendorEvent", device, s)
	if err != nil {
		return 0, nil, err
	}
	marker := new(uintptr)
	if err := p.call(p.library.EnqueueMarker, q.Handle(), 0, 0, uintptr(unsafe.Pointer(marker))); err != nil {
		return 0, nil, err
	}
	return *marker, func() { p.release(*marker) }, nil
}

func TestConformance(t *testing.T) {
	for model := coarseMemory; model <= usmMemory; model++ {
		t.Run(modelNames[model], func(t *testing.T) {
			b := openWith(t, model)
			for i := range b.devices {
				facts, err := b.Describe(i)
				require.NoError(t, err)
				t.Log(facts)
			}
			backendtest.Run(t, producing{b}, backendtest.Options{LargestSize: 1 << 20})
			sources.sweep()
			assert.Empty(t, sources.list)
			assert.Empty(t, b.queues.Events(), "an event is left")
		})
	}
}
