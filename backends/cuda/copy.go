package cuda

import (
	"errors"
	"fmt"

	"hamr/backends"
)

const late = backends.Reading | backends.Writing

// Copy copies bytes in stream order. At return, ordinary host memory has been read as the source, or written as the
// target, wherever the driver guarantees that.
func (b *copyFloor) Copy(dst, src backends.Region, size int, stream backends.Stream) (backends.Progress, error) {
	return b.CopyUntil(nil, dst, src, size, stream)
}

// CopyUntil implements backends.Stopper. Where the driver itself copies out of or into ordinary host memory, it
// copies in parts, since nothing stops it within a part.
func (b *copyFloor) CopyUntil(stop *backends.Stop, dst, src backends.Region, size int,
	stream backends.Stream) (backends.Progress, error) {
	to, from, name := dst.Allocator.Kind(), src.Allocator.Kind(), b.Name()
	if dst.Allocator.Backend() != name && src.Allocator.Backend() != name {
		return backends.Complete,
			fmt.Errorf("the %s backend does not copy from allocator %s to allocator %s", name, src.Allocator, dst.Allocator)
	}
	apart := to == backends.DeviceOnly && from == backends.DeviceOnly && dst.Device != src.Device
	if apart {
		b.connect(dst.Device, src.Device)
	}
	v, err := b.enter(b.copyDevice(dst, src), stream)
	if err != nil {
		return backends.Complete, err
	}
	defer v.leave()
	switch {
	case apart:
		return late, v.copyBetween(dst, src, size, stream)
	case to == backends.DeviceOnly && from == backends.Pageable:
		return b.upload(v, dst, src, size, stream, stop)
	case to == backends.Pageable && from == backends.DeviceOnly:
		return b.download(v, dst, src, size, stream, stop)
	}
	return late, v.transfer(b.driver.MemcpyAsync, dst, src, size, stream)
}

// copyDevice returns the device whose stream a copy is enqueued on.
func (b *copyFloor) copyDevice(dst, src backends.Region) int {
	if dst.Allocator.Kind() == backends.DeviceOnly || src.Allocator.Backend() != b.Name() || src.Device < 0 {
		return dst.Device
	}
	return src.Device
}

func (v *visit) transfer(function uintptr, dst, src backends.Region, size int, stream backends.Stream) error {
	return v.copyRun(run{dst.Address, src.Address, size}, stream, function)
}

// copyBetween names both contexts, so that the driver stages the copy where there is no direct way.
func (v *visit) copyBetween(dst, src backends.Region, size int, stream backends.Stream) error {
	to, err := v.b.primaryContext(dst.Device)
	if err != nil {
		return err
	}
	from, err := v.b.primaryContext(src.Device)
	if err != nil {
		return err
	}
	return v.b.call(v.b.driver.MemcpyPeer, uintptr(dst.Address), v.b.place(to), uintptr(src.Address), v.b.place(from),
		uintptr(size), v.b.native(stream))
}

// upload copies out of ordinary host memory, which the driver stages before it returns. It reads memory later if
// somebody has page-locked it, or if the device reads it through the host's page tables.
func (b *copyFloor) upload(v *visit, dst, src backends.Region, size int, stream backends.Stream,
	stop *backends.Stop) (backends.Progress, error) {
	d, err := b.device(dst.Device)
	if err != nil {
		return backends.Complete, err
	}
	direct, err := b.attribute(d, AttributeHostPageTables)
	if err != nil {
		return backends.Complete, err
	}
	left := late
	if direct == 0 {
		known, err := b.locate(src.Address)
		if err != nil {
			return backends.Complete, err
		}
		if n := lockedPart(known, size); n < size {
			return inTwo(dst, src, n, size, func(dst, src backends.Region, size int) (backends.Progress, error) {
				return b.upload(v, dst, src, size, stream, stop)
			})
		}
		if known.Allocator == backends.None {
			if !b.dialect.ReadsLate {
				left = backends.Writing
			}
			err := b.stage(v, dst.Device, dst.Address, src.Address, size, stream, true, stop)
			if !errors.Is(err, errors.ErrUnsupported) {
				return backends.Writing, err
			}
		}
	}
	return left, inParts(stop, dst, src, size, func(dst, src backends.Region, size int) error {
		return v.transfer(b.driver.MemcpyToDevice, dst, src, size, stream)
	})
}

// stoppedAfter is how many bytes of ordinary host memory the driver copies at a time where the copy may be stopped:
// some milliseconds' work.
const stoppedAfter = 16 << 20

// inParts copies all at once or, where there is a stop, in parts.
func inParts(stop *backends.Stop, dst, src backends.Region, size int,
	copyPart func(dst, src backends.Region, size int) error) error {
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

// download copies into ordinary host memory. The synchronous function, which works on the legacy stream, promises to
// be complete at return. The asynchronous function is complete only in practice, so the copy counts as complete if
// the stream is idle.
func (b *copyFloor) download(v *visit, dst, src backends.Region, size int, stream backends.Stream,
	stop *backends.Stop) (backends.Progress, error) {
	left, err := b.downloadWhole(v, dst, src, size, stream, stop)
	if err == nil || !isInvalid(err) {
		return left, err
	}
	known, asked := b.locate(dst.Address)
	n := lockedPart(known, size)
	if asked != nil || n == size {
		return left, err
	}
	return inTwo(dst, src, n, size, func(dst, src backends.Region, size int) (backends.Progress, error) {
		return b.download(v, dst, src, size, stream, stop)
	})
}

func isInvalid(err error) bool {
	var failed *backends.DeviceError
	return errors.As(err, &failed) && failed.Code == invalidValue
}

// lockedPart is how many of the next bytes are page-locked, if a part of them is; else their size. The driver refuses a
// copy of memory that is page-locked up to some place in it.
func lockedPart(known backends.Location, size int) int {
	//mutate:never the driver is given memory that is page-locked in part
	if end := int(known.Base) + known.Size - int(known.Address); known.Allocator.Kind() == backends.Pinned &&
		known.Size > 0 && end < size {
		return end
	}
	return size
}

// inTwo copies n bytes, and then the rest.
func inTwo(dst, src backends.Region, n, size int,
	copyPart func(dst, src backends.Region, size int) (backends.Progress, error)) (backends.Progress, error) {
	left, err := copyPart(dst, src, n)
	if err != nil {
		return left, err
	}
	dst.Address, src.Address = dst.Address+backends.Address(n), src.Address+backends.Address(n)
	more, err := copyPart(dst, src, size-n)
	return left | more, err
}

// downloadWhole is download by one way for all bytes.
func (b *copyFloor) downloadWhole(v *visit, dst, src backends.Region, size int, stream backends.Stream,
	stop *backends.Stop) (backends.Progress, error) {
	driver := &b.driver
	if b.staging.Serves(src.Device, size, false) {
		known, err := b.locate(dst.Address)
		if err == nil && known.Allocator == backends.None { // else page-locked by somebody: direct
			err = b.stage(v, src.Device, src.Address, dst.Address, size, stream, false, stop)
			if !errors.Is(err, errors.ErrUnsupported) {
				return backends.Complete, err
			}
		}
	}
	if stream == defaultStream || stream == legacyStream {
		return backends.Complete, inParts(stop, dst, src, size, func(dst, src backends.Region, size int) error {
			return b.call(driver.MemcpyToHost, uintptr(dst.Address), uintptr(src.Address), uintptr(size))
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
	code := b.try(driver.StreamQuery, b.native(stream))
	if code == notReady {
		return late, nil
	}
	return backends.Complete, b.finish(driver.StreamQuery, code)
}
