package cuda

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"hamr/backends"
)

// BenchmarkStaged measures copies of ordinary memory, aligned as the system or as NumPy aligns it.
// An upload has two times: until the host's bytes have been read, and until the device has them.
func BenchmarkStaged(b *testing.B) {
	r := New(os.Getenv)
	if err := r.Probe(); err != nil {
		b.Skip(err)
	}
	stream, err := r.NewStream(0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.DestroyStream(0, stream) }()
	for _, size := range []int{1 << 20, 4 << 20, 16 << 20, 64 << 20, 512 << 20} {
		device := reserved(b, r, backends.CUDA, size)
		memory := mapPages(size + hugePage)
		defer unmapPages(memory, size+hugePage)
		for _, offset := range []int{0, 16} {
			host := backends.Region{Address: memory + backends.Address(offset), Allocator: backends.Malloc,
				Device: backends.HostDevice}
			name := fmt.Sprintf("%dMiB+%d", size>>20, offset)
			b.Run("Up/"+name, func(b *testing.B) {
				var read time.Duration
				for b.Loop() {
					begun := time.Now()
					err := copied(r.Copy(device, host, size, stream))
					read += time.Since(begun)
					if err = errors.Join(err, r.Synchronize(0, stream)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(size)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
				b.ReportMetric(float64(size)*float64(b.N)/float64(read.Nanoseconds()), "GB/s-read")
			})
			b.Run("Down/"+name, func(b *testing.B) {
				for b.Loop() {
					if err := copied(r.Copy(host, device, size, stream)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(size)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
			})
		}
	}
}
