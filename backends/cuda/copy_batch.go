package cuda

import (
	"errors"
	"fmt"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// CopyBatch is backends.BatchCopier's. Ordinary host memory is gathered in page-locked chunks by
// several threads, or scattered from there.
func (b *copyFloor) CopyBatch(copies []backends.BatchCopy, stream backends.Stream) (backends.Progress, error) {
	dst, src := copies[0].Dst, copies[0].Src
	to, from := dst.Allocator.Kind(), src.Allocator.Kind()
	if to != backends.DeviceOnly && from != backends.DeviceOnly ||
		to == backends.DeviceOnly && from == backends.DeviceOnly && dst.Device != src.Device {
		return b.copyEach(copies, stream)
	}
	v, err := b.enter(b.copyDevice(dst, src), stream)
	if err != nil {
		return backends.Complete, err
	}
	defer v.leave()
	d, err := b.device(b.copyDevice(dst, src))
	if err != nil {
		return backends.Complete, err
	}
	if v.captures(stream) {
		return b.copyEach(copies, stream) // a graph may not have the rest, or have it again
	}
	if to == backends.Pageable || from == backends.Pageable {
		err := b.gather(v, d, copies, stream)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return b.copyEach(copies, stream)
		case from == backends.Pageable:
			return backends.Writing, err
		}
		return backends.Complete, err
	}
	runs := make([]run, len(copies))
	for i, c := range copies {
		runs[i] = run{c.Dst.Address, c.Src.Address, c.Size}
	}
	by, bus := b.manyBy, min(to, from) == backends.Pinned && max(to, from) == backends.DeviceOnly
	if bus && by != bySingle && by != byBatch {
		err := b.copyAcrossBus(v, d, runs, to == backends.Pinned, stream)
		if !errors.Is(err, errors.ErrUnsupported) {
			return late, err
		}
	}
	switch {
	case to == backends.Managed || from == backends.Managed:
		by = bySingle // a batch would have to say where the pages are
	case by == byDefault && to == from && !b.withoutKernels:
		by = byKernel
	case by == byDefault:
		by = byBatch
	}
	return late, v.copyBeside(d, by, stream, func(s backends.Stream) error {
		return b.copyRuns(v, d, runs, s, b.driver.MemcpyAsync, by)
	})
}

// copyEach is CopyBatch by a Copy of each.
func (b *copyFloor) copyEach(copies []backends.BatchCopy, stream backends.Stream) (all backends.Progress, err error) {
	for _, c := range copies {
		left, err := b.CopyUntil(c.Stop, c.Dst, c.Src, c.Size, stream)
		all |= left
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// bundle is a lane for one staged transfer of many parts.
type bundle struct {
	lane
	copies *copyFloor
	parts  staging.Parts
	remote []backends.Address // of each part, on the device
	by     way
	runs   []run // of one chunk; here to be used again
}

// gather copies between a device and ordinary host memory by way of page-locked chunks, each of which holds several
// of the copies. It returns errors.ErrUnsupported where stage does.
func (b *copyFloor) gather(v *visit, d *device, copies []backends.BatchCopy, stream backends.Stream) error {
	up := copies[0].Dst.Allocator.Kind() == backends.DeviceOnly
	size := 0
	for _, c := range copies {
		size += c.Size
	}
	if !b.staging.Gathers(size, len(copies)) || v.context != d.context.Load() {
		return errors.ErrUnsupported
	}
	direct, err := b.attribute(d, AttributeHostPageTables)
	if err != nil {
		return err
	}
	if direct != 0 {
		return errors.ErrUnsupported
	}
	l := &bundle{lane: lane{b: &b.stagingFloor, visit: v, device: d, stop: copies[0].Stop}, copies: b,
		parts: make(staging.Parts, 0, len(copies)), remote: make([]backends.Address, len(copies)), by: b.manyBy}
	for i, c := range copies {
		host := c.Dst.Address
		l.remote[i] = c.Src.Address
		if up {
			host, l.remote[i] = c.Src.Address, c.Dst.Address
		}
		known, err := b.locate(host)
		if err != nil {
			return err
		}
		//mutate:never page-locked memory in disguise is gathered before it is written
		if known.Allocator != backends.None { // page-locked by somebody, who may write to it in stream order
			return errors.ErrUnsupported
		}
		l.parts = l.parts.Add(hostBytes(host, c.Size))
	}
	if l.by == byDefault {
		l.by = byBatch
	}
	return v.copyBeside(d, l.by, stream, func(s backends.Stream) error {
		l.stream = s
		if up {
			return b.staging.UploadFrom(l, l.parts)
		}
		return b.staging.DownloadTo(l, l.parts)
	})
}

// Up implements staging.Driver.
func (l *bundle) Up(c *staging.Chunk, offset, n int) error {
	return l.copyChunk(c, offset, n, l.b.driver.MemcpyToDevice, func(remote, chunk backends.Address, size int) run {
		return run{remote, chunk, size}
	})
}

// Down implements staging.Driver.
func (l *bundle) Down(c *staging.Chunk, offset, n int) error {
	return l.copyChunk(c, offset, n, l.b.driver.MemcpyToHostAsync, func(remote, chunk backends.Address, size int) run {
		return run{chunk, remote, size}
	})
}

func (l *bundle) copyChunk(c *staging.Chunk, offset, n int, function uintptr,
	of func(remote, chunk backends.Address, size int) run) error {
	l.runs = l.runs[:0]
	l.parts.Each(offset, offset+n, func(part, from, to int) {
		chunk := int(c.Address) + l.parts[part].Start + from - offset
		l.runs = append(l.runs, of(l.remote[part]+backends.Address(from), backends.Address(chunk), to-from))
	})
	return l.enqueue(c, func() error {
		return l.copies.copyRuns(l.visit, l.device, l.runs, l.stream, function, l.by)
	})
}

func (b *copyFloor) readMany() error {
	name := b.lookup(ManySetting)
	by, ok := waysByName[name]
	if !ok {
		return fmt.Errorf("%s is %q: accepted are kernel, batch and single", ManySetting, name)
	}
	b.manyBy = by
	return nil
}
