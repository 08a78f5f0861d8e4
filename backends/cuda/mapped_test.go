package cuda

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// register has another library page-lock host memory, in a device's context. The returned function ends that.
func (r *rig) register(t testing.TB, device int, at backends.Address, size int, flags uintptr) (end func()) {
	t.Helper()
	do := func(function uintptr, arguments ...uintptr) {
		v, err := r.enter(device, defaultStream)
		require.NoError(t, err)
		defer v.leave()
		require.NoError(t, r.call(function, arguments...))
	}
	do(r.driver.MemHostRegister, uintptr(at), uintptr(size), flags)
	return func() { do(r.driver.MemHostUnregister, uintptr(at)) }
}

func asPinned(r backends.Region) backends.Region {
	r.Allocator = backends.CUDAHost
	return r
}

// TestMemoryThatIsLockedInPartIsCopiedWhole, though the driver refuses it.
func TestMemoryThatIsLockedInPartIsCopiedWhole(t *testing.T) {
	r := emulate(t, nil)
	other := r.newStream(t, 0)
	for _, size := range []int{3000, 300_000, 3 << 20} {
		for _, locked := range [][2]int{{0, 1000}, {0, size / 2}, {size / 2, size}, {1000, 2000}} {
			for _, s := range []backends.Stream{0, other} {
				data, host := pageable(t, size)
				end := r.register(t, 0, host.Address+backends.Address(locked[0]), locked[1]-locked[0], 0)
				device := r.reserve(t, backends.CUDA, 0, size, 0)
				for i := range data {
					data[i] = byte(i * 7 >> 3)
				}
				_, err := r.Copy(device.Region, host, size, s)
				require.NoError(t, err)
				require.NoError(t, r.Synchronize(0, s))
				clear(data)
				_, err = r.Copy(host, device.Region, size, s)
				require.NoError(t, err)
				require.NoError(t, r.Synchronize(0, s))
				i := 0
				for i < size && data[i] == byte(i*7>>3) {
					i++
				}
				require.Equal(t, size, i, "the first wrong byte, %v", locked)
				end()
			}
		}
	}
}

// TestKernelsReadLockedMemoryOfOthers only where their device reaches it, at the time of the call.
func TestKernelsReadLockedMemoryOfOthers(t *testing.T) {
	const size = 64 << 10
	for name, c := range map[string]struct {
		device, to int
		flags      uintptr
		ends       bool
		reached    bool
	}{
		"here":                    {0, 0, 0, false, true},
		"for all contexts":        {0, 1, portable, false, true},
		"for another context":     {0, 1, 0, false, false},
		"not any more":            {0, 0, 0, true, false},
		"not any more, for all":   {1, 0, portable, true, false},
		"in part":                 {0, 0, 4, false, false},
		"mapped for all contexts": {1, 0, portable | mapped, false, true},
	} {
		r := emulate(t, withDevices(2))
		data, host := pageable(t, size)
		bytes := size
		if c.flags == 4 {
			bytes /= 2
		}
		end := r.register(t, c.device, host.Address, bytes, c.flags)
		if c.ends {
			end()
		}
		device := r.reserve(t, backends.CUDA, c.to, size, 0)
		for i := range data {
			data[i] = byte(i >> 8)
		}
		calls := map[string]func() error{
			"blocks": func() error {
				_, err := r.CopyBlocks(&backends.Blocks{Size: 256, Count: 2, To: backends.BlockIndex{List: []int64{0, 255},
					Extent: 256}, From: backends.BlockIndex{List: []int64{0, 255}, Extent: 256}, Planes: []backends.Plane{{
					Dst: device.Region, Src: asPinned(host), DstStride: 256, SrcStride: 256}}}, 0)
				return err
			},
			"backward": func() error {
				last := asPinned(host)
				last.Address += 255 * 256
				_, err := r.CopyBlocks(&backends.Blocks{Size: 256, Count: 1, To: backends.BlockIndex{List: []int64{255},
					Extent: 256}, From: backends.BlockIndex{List: []int64{0}, Extent: 256}, Planes: []backends.Plane{{
					Dst: device.Region, Src: last, DstStride: 256, SrcStride: -256}}}, 0)
				return err
			},
			"list": func() error {
				list := []backends.BatchCopy{{Dst: device.Region, Src: asPinned(host), Size: 256},
					{Dst: moved(device.Region, size-256), Src: moved(asPinned(host), size-256), Size: 256}}
				kernels := r.calls("cuLaunchKernel")
				require.NoError(t, copied(r.CopyBatch(list, 0)))
				if r.calls("cuLaunchKernel") == kernels {
					return errors.ErrUnsupported // it went another way
				}
				return nil
			},
			"converted": func() error {
				of := func(at backends.Region, size, step int) backends.Strided {
					return backends.Strided{Region: at, Element: backends.Element{Kind: backends.Unsigned, Size: size},
						Shape: []int{256}, Strides: []int{step}}
				}
				return r.Convert(of(device.Region, 2, 256), of(asPinned(host), 1, 256), 0)
			},
		}
		for call, do := range calls {
			err := do()
			if c.reached {
				require.NoError(t, err, "%s, %s", name, call)
			} else {
				assert.ErrorIs(t, err, errors.ErrUnsupported, "%s, %s", name, call)
			}
		}
		require.NoError(t, r.Synchronize(c.to, 0))
		if !c.ends {
			end()
		}
	}
}
