package openmp

import (
	"bytes"
	"runtime"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const (
	largestSeed  = 64 << 10 // bytes of a pattern, repeated, that a device is sent
	largestChunk = 4 << 20  // of a copy between devices through the host
)

// Allocate takes memory of a device. A runtime without memory says nothing else about the reason.
func (b *Backend) Allocate(r backends.Request) (at backends.Address, err error) {
	err = b.on("omp_target_alloc", r.Device, func(number, initial uintptr) error {
		at = backends.Address(dl.Call(b.library.TargetAlloc, uintptr(r.Size), number))
		if at == 0 {
			return &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size,
				Detail: "omp_target_alloc returned NULL"}
		}
		if !r.Zero {
			return nil
		}
		if err := b.fill(at, number, initial, []byte{0}, r.Size); err != nil {
			dl.Call(b.library.TargetFree, uintptr(at), number)
			return err
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return at, nil
}

// Free gives memory back at once.
func (b *Backend) Free(at backends.Region, _ int, _ backends.Stream) error {
	return b.on("omp_target_free", at.Device, func(number, _ uintptr) error {
		dl.Call(b.library.TargetFree, uintptr(at.Address), number)
		return nil
	})
}

// Copy copies before it returns.
func (b *Backend) Copy(dst, src backends.Region, size int, _ backends.Stream) (backends.Progress, error) {
	own := dst
	if own.Allocator.Backend() != name {
		own = src
	}
	err := b.on("omp_target_memcpy", own.Device, func(_, initial uintptr) error {
		to, from := b.numberOf(dst, initial), b.numberOf(src, initial)
		code := b.copy(dst.Address, src.Address, size, to, from)
		if code != 0 && to != from && to != initial && from != initial {
			// GCC's runtime 12 copies between no two devices.
			code = b.copyThroughHost(dst.Address, src.Address, size, to, from, initial)
		}
		if code != 0 {
			return failure("omp_target_memcpy", code, "")
		}
		return nil
	})
	return backends.Complete, err
}

func (b *Backend) copy(dst, src backends.Address, size int, to, from uintptr) (code int32) {
	return int32(dl.Call(b.library.TargetMemcpy, uintptr(dst), uintptr(src), uintptr(size), 0, 0, to, from))
}

func (b *Backend) copyThroughHost(dst, src backends.Address, size int, to, from, initial uintptr) (code int32) {
	chunk := make([]byte, min(size, largestChunk))
	here, unpin := pinned(chunk)
	defer unpin()
	for done := 0; done < size && code == 0; done += len(chunk) {
		n := min(len(chunk), size-done)
		if code = b.copy(here, src+backends.Address(done), n, initial, from); code == 0 {
			code = b.copy(dst+backends.Address(done), here, n, to, initial)
		}
	}
	return code
}

// Fill sends the device some repeats of the pattern, which the device then doubles. Only OpenMP 6.0 has a routine for
// fills, of single bytes.
func (b *Backend) Fill(dst backends.Region, pattern []byte, count int, _ backends.Stream) error {
	return b.on("omp_target_memcpy", dst.Device, func(number, initial uintptr) error {
		return b.fill(dst.Address, number, initial, pattern, len(pattern)*count)
	})
}

func (b *Backend) fill(at backends.Address, number, initial uintptr, pattern []byte, size int) error {
	seed := bytes.Repeat(pattern, min(size, max(largestSeed, len(pattern)))/len(pattern))
	here, unpin := pinned(seed)
	defer unpin()
	code := b.copy(at, here, len(seed), number, initial)
	for filled := len(seed); code == 0 && filled < size; filled *= 2 {
		code = b.copy(at+backends.Address(filled), at, min(filled, size-filled), number, number)
	}
	if code != 0 {
		return failure("omp_target_memcpy", code, "")
	}
	return nil
}

// pinned is where C finds data until unpin is called.
func pinned(data []byte) (at backends.Address, unpin func()) {
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(data))
	return backends.Address(unsafe.Pointer(unsafe.SliceData(data))), pin.Unpin
}
