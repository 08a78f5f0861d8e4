package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// swap is elements of every other of 40 places, for a device to rearrange.
func swap(r *rig, b block) (dst, src backends.Strided) {
	e := backends.Element{Kind: backends.Opaque, Size: 4}
	dst = backends.Strided{Region: b.Region, Element: e, Shape: []int{20}, Strides: []int{8}}
	src = backends.Strided{Region: moved(b.Region, 1600), Element: e, Shape: []int{20}, Strides: []int{12}}
	return dst, src
}

// What passes does not keep a device from rearranging for good.
func TestALoadingFailureThatPassesIsNotRemembered(t *testing.T) {
	for code, passes := range map[int]bool{
		outOfMemory: true, 46: true, 900: true, 901: true, 906: true, 908: true,
		200: false, 209: false, 218: false, 222: false, 719: false,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			r := emulate(t, nil)
			b := r.reserve(t, backends.CUDA, 0, 3000, 0)
			dst, src := swap(r, b)
			r.fail("cuModuleLoadData", 1, code)
			assert.False(t, r.Converts(dst, src, 0))
			r.stopFailing()
			assert.Equal(t, passes, r.Converts(dst, src, 0))
			err := r.Convert(dst, src, 0)
			if passes {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errors.ErrUnsupported)
			}
			tries := 1
			if passes {
				tries = 2
			}
			assert.Equal(t, tries, r.calls("cuModuleLoadData"))
			require.NoError(t, r.Synchronize(0, 0))
		})
	}
}

// A driver compiles what is used, and each kernel once.
func TestEachKernelIsLoadedAlone(t *testing.T) {
	r := emulate(t, nil)
	b := r.reserve(t, backends.CUDA, 0, 3000, 0)
	dst, src := swap(r, b)
	for _, names := range [][]string{{convertKernel}, {convertKernel, fillKernel}} {
		require.NoError(t, r.Convert(dst, src, 0))
		if len(names) > 1 {
			require.NoError(t, r.fillByKernel(b.Region, []byte("abc"), 10, 0))
		}
		assert.ElementsMatch(t, names, slices.Collect(maps.Keys(r.devices[0].kernels.modules)))
		assert.Equal(t, len(names), r.calls("cuModuleLoadData"))
	}
	for _, name := range []string{convertKernel, fillKernel} {
		assert.Equal(t, 1, bytes.Count(textOf(name), []byte(entry)))
		assert.Contains(t, string(textOf(name)), entry+name+"(")
	}
	require.NoError(t, r.Synchronize(0, 0))
}

// A driver takes seconds to compile kernels.
func TestLoadingKernelsStopsNobodyElse(t *testing.T) {
	r := emulate(t, nil)
	b := r.reserve(t, backends.CUDA, 0, 3000, 0)
	_, host := r.host(t, 3000)
	host.Allocator = backends.Malloc
	d := r.devices[0]
	finishes := func(what string, do func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- do() }()
		select {
		case err := <-done:
			require.NoError(t, err, what)
		case <-time.After(time.Minute):
			t.Fatalf("%s waits", what)
		}
	}
	require.NoError(t, copied(r.Copy(b.Region, host, 3000, 0)))
	// As if another thread were at it.
	d.mu.Lock()
	finishes("loading", func() error { _, err := r.kernel(0, fillKernel); return err })
	d.mu.Unlock()
	d.kernels.mu.Lock()
	finishes("an upload", func() error { return copied(r.Copy(b.Region, host, 3000, 0)) })
	finishes("a stream", func() error { _, err := r.Resolve(0, perThreadStream); return err })
	d.kernels.mu.Unlock()
	require.NoError(t, r.Synchronize(0, 0))
}

func TestConvertsSaysWhatConvertDoes(t *testing.T) {
	for _, kernels := range []string{"0", "1"} {
		t.Run("kernels "+kernels, func(t *testing.T) {
			r := emulate(t, settings{KernelsSetting: kernels})
			b := r.reserve(t, backends.CUDA, 0, 3000, 0)
			foreign := r.newForeignStream(t, r.newContext(t, 0))
			dst, src := swap(r, b)
			deep := dst
			deep.Shape, deep.Strides = nil, nil
			for i, stride := 0, 4; i < 10; i, stride = i+1, 3*stride {
				deep.Shape, deep.Strides = append(deep.Shape, 2), append(deep.Strides, stride)
			}
			pageable := src
			pageable.Allocator = backends.Malloc
			for name, c := range map[string]struct {
				dst, src backends.Strided
				stream   backends.Stream
			}{
				"of the device":       {dst, src, 0},
				"a foreign context's": {dst, src, foreign},
				"too many dimensions": {deep, deep, 0},
				"pageable":            {dst, pageable, 0},
			} {
				launches := r.calls("cuLaunchKernel")
				says := r.Converts(c.dst, c.src, c.stream)
				assert.Equal(t, launches, r.calls("cuLaunchKernel"), name)
				assert.Equal(t, name == "of the device" && kernels == "1", says, name)
				if err := r.Convert(c.dst, c.src, c.stream); says {
					assert.NoError(t, err, name)
				} else {
					assert.ErrorIs(t, err, errors.ErrUnsupported, name)
				}
			}
			require.NoError(t, r.Synchronize(0, 0))
		})
	}
}
