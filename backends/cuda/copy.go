package cuda

import (
	"errors"
	"fmt"

	"hamr/backends"
)

const late = backends.Reading | backends.Writing

// Copy moves bytes in stream order. Out of ordinary host memory the source has
// been read at return, and into it the copy is complete, wherever the driver can
// be relied on for that.
func (b *Backend) Copy(dst, src backends.Region, size int, stream backends.Stream) (backends.Progress, error) {
	return b.CopyUntil(nil, dst, src, size, stream)
}

// CopyUntil implements backends.Stopper. What the driver copies by itself, out of or into ordinary
// host memory, it copies in parts: in the middle of one, nothing stops it.
func (b *Backend) CopyUntil(stop *backends.Stop, dst, src backends.Region, size int, stream backends.Stream) (backends.Progress, error) {
	to, from := dst.Allocator.Kind(), src.Allocator.Kind()
	if dst.Allocator.Backend() != name && src.Allocator.Backend() != name {
		return backends.Complete, fmt.Errorf("the cuda backend does not copy from allocator %s to allocator %s", src.Allocator, dst.Allocator)
	}
	apart := to == backends.DeviceOnly && from == backends.DeviceOnly && dst.Device != src.Device
	if apart {
		b.connect(dst.Device, src.Device)
	}
	v, err := b.enter(copyDevice(dst, src), stream)
	if err != nil {
		return backends.Complete, err
	}
	defer v.leave()
	switch {
	case apart:
		return late, v.copyBetween(dst, src, size, stream)
	case to == backends.DeviceOnly && from == backends.Pageable:
		return v.upload(dst, src, size, stream, stop)
	case to == backends.Pageable && from == backends.DeviceOnly:
		return v.download(dst, src, size, stream, stop)
	}
	return late, v.transfer(b.driver.MemcpyAsync, dst, src, size, stream)
}

// copyDevice returns the device whose stream a copy is enqueued on.
func copyDevice(dst, src backends.Region) int {
	if dst.Allocator.Kind() == backends.DeviceOnly || src.Allocator.Backend() != name || src.Device < 0 {
		return dst.Device
	}
	return src.Device
}

func (v *visit) transfer(function uintptr, dst, src backends.Region, size int, stream backends.Stream) error {
	return v.b.call(function, uintptr(dst.Address), uintptr(src.Address), uintptr(size), uintptr(stream))
}

// copyBetween names both contexts: the driver then stages where there is no direct
// way.
func (v *visit) copyBetween(dst, src backends.Region, size int, stream backends.Stream) error {
	to, err := v.b.primaryContext(dst.Device)
	if err != nil {
		return err
	}
	from, err := v.b.primaryContext(src.Device)
	if err != nil {
		return err
	}
	return v.b.call(v.b.driver.MemcpyPeer, uintptr(dst.Address), to, uintptr(src.Address), from, uintptr(size), uintptr(stream))
}

// upload copies out of ordinary host memory, which the driver stages before it
// returns. Memory that somebody page-locked, or that the device reads through the
// host's page tables, it reads later.
func (v *visit) upload(dst, src backends.Region, size int, stream backends.Stream, stop *backends.Stop) (backends.Progress, error) {
	d, err := v.b.device(dst.Device)
	if err != nil {
		return backends.Complete, err
	}
	direct, err := v.b.attribute(d, attributeHostPageTables)
	if err != nil {
		return backends.Complete, err
	}
	left := late
	if direct == 0 {
		known, err := v.b.locate(src.Address)
		if err != nil {
			return backends.Complete, err
		}
		if known.Allocator == backends.None {
			left = backends.Writing
			if err := v.stage(dst.Device, dst.Address, src.Address, size, stream, true, stop); !errors.Is(err, errors.ErrUnsupported) {
				return left, err
			}
		}
	}
	return left, inParts(stop, dst, src, size, func(dst, src backends.Region, size int) error {
		return v.transfer(v.b.driver.MemcpyToDevice, dst, src, size, stream)
	})
}

// stoppedAfter is how much ordinary host memory the driver copies at a time, in bytes, where the
// copy may be asked to end: some milliseconds' worth.
const stoppedAfter = 16 << 20

// inParts copies all at once or, where there is a stop, in parts.
func inParts(stop *backends.Stop, dst, src backends.Region, size int, copyPart func(dst, src backends.Region, size int) error) error {
	if stop == nil {
		return copyPart(dst, src, size)
	}
	for size > 0 {
		if stop.Asked() {
			return backends.ErrStopped
		}
		n := min(size, stoppedAfter)
		if err := copyPart(dst, src, n); err != nil {
			return err
		}
		dst.Address, src.Address, size = dst.Address+backends.Address(n), src.Address+backends.Address(n), size-n
	}
	return nil
}

// download copies into ordinary host memory. The synchronous function, which works
// on the legacy stream, promises to be complete at return. The asynchronous one
// merely is in practice, so whether the stream is idle decides.
func (v *visit) download(dst, src backends.Region, size int, stream backends.Stream, stop *backends.Stop) (backends.Progress, error) {
	driver := &v.b.driver
	if v.b.staging.Serves(src.Device, size, false) {
		known, err := v.b.locate(dst.Address)
		if err == nil && known.Allocator == backends.None { // else page-locked by somebody: direct
			err = v.stage(src.Device, src.Address, dst.Address, size, stream, false, stop)
			if !errors.Is(err, errors.ErrUnsupported) {
				return backends.Complete, err
			}
		}
	}
	if stream == defaultStream || stream == legacyStream {
		return backends.Complete, inParts(stop, dst, src, size, func(dst, src backends.Region, size int) error {
			return v.b.call(driver.MemcpyToHost, uintptr(dst.Address), uintptr(src.Address), uintptr(size))
		})
	}
	err := inParts(stop, dst, src, size, func(dst, src backends.Region, size int) error {
		return v.transfer(driver.MemcpyToHostAsync, dst, src, size, stream)
	})
	if err != nil {
		if stop != nil {
			err = errors.Join(err, v.finish(stream)) // of the parts before
		}
		return backends.Complete, err
	}
	code := v.b.try(driver.StreamQuery, uintptr(stream))
	if code == notReady {
		return late, nil
	}
	return backends.Complete, v.b.finish(driver.StreamQuery, code)
}
