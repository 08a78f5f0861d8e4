package sycl

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/internal/dl"
)

// extra is what tests alone call of the library.
type extra struct {
	Parts       uintptr `dl:"DPCTLDevice_CreateSubDevicesEqually"`
	CopyContext uintptr `dl:"DPCTLContext_Copy"`
	CopyQueue   uintptr `dl:"DPCTLQueue_Copy"`
}

// found returns the machine's SYCL, or skips where there is none, or no device with such memory.
func found(t testing.TB) (*Backend, *extra) {
	t.Helper()
	b := New(os.Getenv)
	err := b.Probe()
	if errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	require.NoError(t, err)
	if err := b.Supports(backends.SYCLDevice, 0); err != nil {
		t.Skip(err)
	}
	library, err := dl.OpenWith(dl.System, b.names(), "")
	require.NoError(t, err)
	more := new(extra)
	require.NoError(t, dl.Bind(library, more))
	return b, more
}

// inParts returns the machine's SYCL with the first device as it is and as two parts, each of them a
// device with a context of its own: as those of several platforms are.
func inParts(t testing.TB) *Backend {
	t.Helper()
	b, more := found(t)
	units := dl.Call(b.library.DeviceUnits, b.devices[0].handle)
	if uint32(units) < 2 {
		t.Skip("the device has one compute unit")
	}
	list := dl.Call(more.Parts, b.devices[0].handle, uintptr(uint32(units))/2)
	if list == 0 {
		t.Skip("the device cannot be divided")
	}
	defer dl.Call(b.library.DeleteVector, list)
	b.devices = slices.Clip(b.devices[:1])
	for i := range uintptr(2) {
		d := b.newDevice(dl.Call(b.library.VectorGetAt, list, i))
		d.number = len(b.devices)
		b.devices = append(b.devices, d)
	}
	return b
}

// producing plays somebody who has a sycl::event.
type producing struct{ *Backend }

func (p producing) VendorEvent(device int, s backends.Stream) (uintptr, func(), error) {
	q, err := p.queues.On("VendorEvent", device, s)
	if err != nil {
		return 0, nil, err
	}
	event, err := p.made(p.library.Barrier, q.Handle())
	return event, func() { p.release(event) }, err
}

func conform(t *testing.T, b *Backend) {
	for i := range b.devices {
		facts, err := b.Describe(i)
		require.NoError(t, err)
		t.Log(facts)
	}
	backendtest.Run(t, producing{b}, backendtest.Options{LargestSize: 1 << 20})
	assert.Empty(t, b.queues.Events(), "an event is left")
}

func TestConformance(t *testing.T) {
	b, _ := found(t)
	conform(t, b)
}

func TestConformanceInParts(t *testing.T) {
	b := inParts(t)
	conform(t, b)
	assert.Len(t, b.devices, 3)
}
