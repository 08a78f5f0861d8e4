package bridge

import (
	"testing"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
)

func BenchmarkCreateFillRelease(b *testing.B) {
	var shape, strides [64]int64
	value := 1.0
	b.ReportAllocs()
	for b.Loop() {
		shape[0] = 256
		d := Descriptor{Allocator: 1, Device: -1, Element: 11, NDim: 1, Shape: &shape[0], Strides: &strides[0]}
		if err := Create(&d, unsafe.Pointer(&value), 12); err != nil {
			b.Fatal(err)
		}
		if err := Release(d.Memory); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlainDeviceMemory is what Python pays, on top of its own call, for device memory
// that is freed and taken again, on the driver of this machine.
func BenchmarkPlainDeviceMemory(b *testing.B) {
	if _, err := Runtime.Backend(backends.CUDA); err != nil {
		b.Skip(err)
	}
	for _, size := range []int64{1 << 10, 1 << 20, 64 << 20} {
		pair := func(b *testing.B) func() {
			dimensions := new([2]int64)
			return func() {
				dimensions[0] = size
				d := Descriptor{Allocator: int32(backends.CUDA), Device: -1, Element: int32(arrayiface.Uint8), NDim: 1, Transfer: 1,
					Shape: &dimensions[0], Strides: &dimensions[1]}
				var err error
				if !CreateAtOnce(&d) {
					err = Create(&d, nil, 0)
				}
				if err == nil && !ReleaseAtOnce(d.Memory) {
					err = Release(d.Memory)
				}
				if err != nil {
					b.Error(err)
				}
			}
		}
		suffix := "/" + map[int64]string{1 << 10: "1KiB", 1 << 20: "1MiB", 64 << 20: "64MiB"}[size]
		b.Run("OneThread"+suffix, func(b *testing.B) {
			b.ReportAllocs()
			one := pair(b)
			for b.Loop() {
				one()
			}
		})
		b.Run("ManyThreads"+suffix, func(b *testing.B) {
			b.RunParallel(func(each *testing.PB) {
				one := pair(b)
				for each.Next() {
					one()
				}
			})
		})
	}
}
