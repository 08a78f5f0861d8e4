package gobuffer

import (
	"testing"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/host"
)

// BenchmarkNewFilledArray is a small buffer's life on the host backend: what
// Python pays on top of its own call for each buffer.
func BenchmarkNewFilledArray(b *testing.B) {
	r, err := NewRuntime(host.New())
	if err != nil {
		b.Fatal(err)
	}
	value := float32(1.5)
	for name, v := range map[string]Value{"filled": {arrayiface.Float32, unsafe.Pointer(&value)}, "empty": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			shape := []int{256}
			for b.Loop() {
				a, err := r.NewFilledArray(arrayiface.Float32, shape, Options{Allocator: backends.Malloc}, v)
				if err != nil {
					b.Fatal(err)
				}
				if err := a.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCounting is what all allocations and releases have in common, also where
// several threads do them.
func BenchmarkCounting(b *testing.B) {
	r, err := NewRuntime(host.New())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("come and go", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			m := new(Memory)
			for p.Next() {
				r.counters[backends.Malloc].Add(m, &m.place, 4096)
				r.counters[backends.Malloc].Remove(&m.place, 4096)
			}
		})
	})
	b.Run("grow", func(b *testing.B) {
		for b.Loop() {
			r.counters[backends.CPP].Grow(4096)
		}
	})
}
