package pool

import "testing"

func benchmarked(b *testing.B, f func(p *Pool)) {
	p := New(newFake(b), 1<<33)
	p.source.(*fakeSource).stream(1, true)
	b.ReportAllocs()
	b.ResetTimer()
	f(p)
}

func pair(b *testing.B, p *Pool, size int) {
	at, err := p.Take(size, 1)
	if err == nil {
		_, err = p.GiveBack(at, 1)
	}
	if err != nil {
		b.Error(err)
	}
}

var sizes = map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20, "64MiB": 64 << 20}

func BenchmarkTakeAndGiveBack(b *testing.B) {
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			benchmarked(b, func(p *Pool) {
				for b.Loop() {
					pair(b, p, size)
				}
			})
		})
	}
}

func BenchmarkTakeAndGiveBackByEightGoroutines(b *testing.B) {
	for name, size := range sizes {
		b.Run(name, func(b *testing.B) {
			benchmarked(b, func(p *Pool) {
				b.SetParallelism(8)
				b.RunParallel(func(each *testing.PB) {
					for each.Next() {
						pair(b, p, size)
					}
				})
			})
		})
	}
}
