package cuda

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"hamr/backends"
)

// BenchmarkDriver measures on the driver of this machine, on a thread where the
// primary context is current, as it is beside other libraries.
func BenchmarkDriver(b *testing.B) {
	r := New(os.Getenv)
	if err := r.Probe(); err != nil {
		b.Skip(err)
	}
	stream, err := r.NewStream(0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.DestroyStream(0, stream) }()
	m := meter{r, stream}
	for _, size := range []int{1 << 10, 64 << 10, 16 << 20} {
		suffix := "/" + map[int]string{1 << 10: "1KiB", 64 << 10: "64KiB", 16 << 20: "16MiB"}[size]
		device, pinned := reserved(b, r, backends.CUDA, size), reserved(b, r, backends.CUDAHost, size)
		second := reserved(b, r, backends.CUDA, size)
		_, host := pageable(b, size)
		m.run(b, "Upload"+suffix, size, func() error { return copied(r.Copy(device, host, size, stream)) })
		m.run(b, "Download"+suffix, size, func() error { return copied(r.Copy(host, device, size, stream)) })
		m.run(b, "DownloadLegacy"+suffix, size, func() error { return copied(r.Copy(host, device, size, legacyStream)) })
		m.run(b, "UploadPinned"+suffix, size, func() error {
			return errors.Join(copied(r.Copy(device, pinned, size, stream)), r.Synchronize(0, stream))
		})
		m.run(b, "Within"+suffix, size, func() error { return copied(r.Copy(second, device, size, stream)) })
		m.run(b, "Fill"+suffix, size, func() error { return r.Fill(device, []byte{1, 2, 3, 4}, size/4, stream) })
		m.run(b, "FillOdd"+suffix, size, func() error { return r.Fill(device, []byte{1, 2, 3}, size/3, stream) })
		m.run(b, "FillPasses"+suffix, size, func() error { return r.fillByPasses(device, []byte{1, 2, 3}, size/3, stream) })
	}
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
		m.run(b, "AllocateFree/"+a.String(), 0, func() error {
			at, err := r.Allocate(backends.Request{Allocator: a, Size: 1024, Stream: stream})
			return errors.Join(err, r.Free(backends.Region{Address: at, Allocator: a}, 1024, stream))
		})
	}
	m.run(b, "Follow", 0, func() error {
		e, err := r.NewEvent(0)
		return errors.Join(err, r.Record(0, e, stream), r.Wait(0, legacyStream, e), r.DestroyEvent(0, e))
	})
	m.run(b, "Locate", 0, func() error { _, err := r.Locate(16); return err })
	m.run(b, "ResolvePerThread", 0, func() error { _, err := r.Resolve(0, perThreadStream); return err })
	m.run(b, "Idle", 0, func() error { _, err := r.Idle(0, stream); return err })
}

// BenchmarkPlainMemory takes memory from the pool and gives it back.
func BenchmarkPlainMemory(b *testing.B) {
	r := New(os.Getenv)
	if err := r.Probe(); err != nil {
		b.Skip(err)
	}
	for _, size := range []int{1 << 10, 1 << 20, 64 << 20} {
		pair := func() {
			at, err := r.Allocate(backends.Request{Allocator: backends.CUDA, Size: size})
			if err == nil {
				err = r.Free(backends.Region{Address: at, Allocator: backends.CUDA}, size, 0)
			}
			if err != nil {
				b.Error(err)
			}
		}
		suffix := "/" + map[int]string{1 << 10: "1KiB", 1 << 20: "1MiB", 64 << 20: "64MiB"}[size]
		b.Run("OneThread"+suffix, func(b *testing.B) {
			for b.Loop() {
				pair()
			}
		})
		b.Run("ManyThreads"+suffix, func(b *testing.B) {
			b.RunParallel(func(each *testing.PB) {
				for each.Next() {
					pair()
				}
			})
		})
	}
}

func reserved(b *testing.B, r *Backend, a backends.Allocator, size int) backends.Region {
	b.Helper()
	at, err := r.Allocate(backends.Request{Allocator: a, Size: size})
	if err != nil {
		b.Fatal(err)
	}
	region := backends.Region{Address: at, Allocator: a}
	b.Cleanup(func() { _ = r.Free(region, size, 0) })
	return region
}

// meter measures operations on a stream that is idle at first. The time does not
// include the wait for what they enqueue.
type meter struct {
	*Backend
	stream backends.Stream
}

func (m meter) run(b *testing.B, name string, size int, do func() error) {
	b.Run(name, func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before, err := m.Activate(0)
		defer func() { _ = m.Restore(before) }()
		// The first time makes pools and loads kernels.
		if err := errors.Join(err, do(), m.Synchronize(0, m.stream), m.Synchronize(0, legacyStream)); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for b.Loop() {
			if err := do(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
