package hip

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// TestBlocksGoByKernels, whose numbers are a list or lie on the device.
func TestBlocksGoByKernels(t *testing.T) {
	const count, size = 1000, 16
	r := standIn(t, variables{"HAMR_EMULATOR_DEVICES": "1"})
	room := func(a backends.Allocator, size int) backends.Region {
		at, err := r.Allocate(backends.Request{Allocator: a, Size: size, Zero: true})
		require.NoError(t, err)
		made := backends.Region{Address: at, Allocator: a}
		t.Cleanup(func() { assert.NoError(t, errors.Join(r.Synchronize(0, 0), r.Free(made, size, 0))) })
		return made
	}
	bytesOf := func(at backends.Region, size int) []byte {
		address := uintptr(at.Address)
		return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), size)
	}
	host, indices := room(backends.HIPHost, count*size), room(backends.HIPHost, 4*count)
	device, numbers := room(backends.HIP, count*size), room(backends.HIP, 4*count)
	var named []byte
	list, want := make([]int64, count), make([]byte, count*size)
	for k := range list {
		list[k] = int64(count - 1 - k)
		named = binary.NativeEndian.AppendUint32(named, uint32(-1-k))
		for i := range size {
			bytesOf(host, count*size)[k*size+i] = byte(k)
			want[k*size+i] = byte(count - 1 - k)
		}
	}
	copy(bytesOf(indices, 4*count), named)
	_, err := r.Copy(numbers, indices, 4*count, 0)
	require.NoError(t, err)
	blocks := func(dst, src backends.Region, to backends.BlockIndex) *backends.Blocks {
		to.Extent = count
		return &backends.Blocks{Size: size, Count: count, To: to, From: backends.BlockIndex{Extent: count},
			Planes: []backends.Plane{{Dst: dst, Src: src, DstStride: size, SrcStride: size}}}
	}
	_, err = r.CopyBlocks(blocks(device, host, backends.BlockIndex{List: list}), 0)
	require.NoError(t, err)
	back := room(backends.HIPHost, count*size)
	_, err = r.Copy(back, device, count*size, 0)
	require.NoError(t, err)
	require.NoError(t, r.Synchronize(0, 0))
	require.True(t, slices.Equal(want, bytesOf(back, count*size)))
	there := blocks(host, device, backends.BlockIndex{Region: numbers, Width: 4})
	there.Repeated = true
	_, err = r.CopyBlocks(there, 0)
	require.NoError(t, err)
	require.NoError(t, r.Synchronize(0, 0))
	for k := range count { // twice the other way round is as it was
		require.EqualValues(t, byte(k), bytesOf(host, count*size)[k*size])
	}
	assert.Nil(t, there.Failed())
}
