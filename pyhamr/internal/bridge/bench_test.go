package bridge

import (
	"testing"
	"unsafe"
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
