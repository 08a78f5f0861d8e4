package cuda

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// diskChunk is how many bytes go to a file at a time, while the bus has the next.
const diskChunk = 32 << 20

// save keeps a group's contents. After an error nothing is kept.
func (b *pausingFloor) save(g *group, keep backends.Keep, folder string) (err error) {
	switch keep {
	case backends.KeepHost:
		err = b.saveOnHost(g)
	case backends.KeepDisk:
		err = b.saveOnDisk(g, folder)
	}
	if refused(err) {
		g.kept = nil // the device may still write there
	} else if err != nil {
		b.forget(g)
	}
	return err
}

// restore is the opposite. The contents stay where they are kept.
func (b *pausingFloor) restore(g *group) error {
	switch {
	case g.kept == nil:
		return nil
	case g.kept.file != nil:
		return b.throughDisk(g, false)
	}
	return b.throughBlocks(g, false)
}

// forget ends what is kept. Page-locked memory stays for the next time: to lock takes longer than to copy.
func (b *pausingFloor) forget(g *group) {
	kept := g.kept
	g.kept = nil
	if kept == nil {
		return
	}
	for _, block := range kept.blocks {
		g.spare = append(g.spare, block)
	}
	if kept.file != nil {
		_ = kept.file.Close()
	}
}

func (b *pausingFloor) saveOnHost(g *group) error {
	g.kept = &contents{blocks: map[*extent]lockedBlock{}}
	for _, e := range g.extents {
		if block, is := g.takeSpare(sum(e.mapped)); is {
			g.kept.blocks[e] = block
		}
	}
	if err := b.dropSpare(g); err != nil {
		return err
	}
	for _, e := range g.extents {
		size := sum(e.mapped)
		if _, has := g.kept.blocks[e]; has {
			continue
		}
		at, err := b.lockedFor(g, size)
		if err != nil {
			return err
		}
		g.kept.blocks[e] = lockedBlock{at, size}
	}
	return b.throughBlocks(g, true)
}

// lockedFor returns page-locked memory for a group's contents.
func (b *pausingFloor) lockedFor(g *group, size int) (backends.Address, error) {
	at, err := b.takePinned(size)
	if isOutOfMemory(err) && b.trimForMore(b.dialect.Allocators.Pinned) {
		at, err = b.takePinned(size)
	}
	if isOutOfMemory(err) {
		return 0, &backends.OutOfMemoryError{Allocator: b.dialect.Allocators.Pinned, Device: backends.HostDevice, Size: size,
			Detail: fmt.Sprintf("for the contents of %q: %v", g.tag, err)}
	}
	return at, err
}

// throughBlocks copies all contents at once, on each device's bus.
func (b *pausingFloor) throughBlocks(g *group, out bool) error {
	return b.onStreams(g, func(streams map[*device]backends.Stream) error {
		for _, e := range g.extents {
			if err := b.cross(e, 0, g.kept.blocks[e].at, sum(e.mapped), streams[e.device], out); err != nil {
				return err
			}
		}
		return nil
	})
}

// onStreams calls work with a stream of each device, and waits for these. A *NotFreedError says that the work may go
// on.
func (b *pausingFloor) onStreams(g *group, work func(map[*device]backends.Stream) error) (failed error) {
	streams := map[*device]backends.Stream{}
	for _, d := range g.devices() {
		s, err := b.NewStream(d.number)
		if err != nil {
			failed = err
			break
		}
		streams[d] = s
	}
	if failed == nil {
		failed = work(streams)
	}
	for d, s := range streams {
		//mutate:skip contents are taken for copied before they are
		err := b.Synchronize(d.number, s)
		// A wait reports what went wrong before it, too. Only a second one says whether the work is over.
		if err != nil && b.Synchronize(d.number, s) != nil {
			err = &backends.NotFreedError{Reason: err}
		}
		failed = errors.Join(failed, err, b.DestroyStream(d.number, s))
	}
	return failed
}

// cross enqueues a copy between page-locked memory and an extent, from an offset on.
func (b *pausingFloor) cross(e *extent, offset int, host backends.Address, size int, s backends.Stream,
	out bool) error {
	v, err := b.enter(e.device.number, s)
	if err != nil {
		return err
	}
	defer v.leave()
	at := e.start + backends.Address(offset)
	if out {
		return b.call(b.driver.MemcpyToHostAsync, uintptr(host), uintptr(at), uintptr(size), b.native(s))
	}
	return b.call(b.driver.MemcpyToDevice, uintptr(at), uintptr(host), uintptr(size), b.native(s))
}

func (b *pausingFloor) saveOnDisk(g *group, folder string) error {
	file, err := os.CreateTemp(folder, "hamr-paused-*")
	if err != nil {
		return &backends.NotKeptError{Tag: g.tag, Size: int64(g.bytes(nil)), Folder: folder, Reason: err}
	}
	g.kept = &contents{file: file, begins: map[*extent]int64{}}
	if err := os.Remove(file.Name()); err != nil { // it ends with the process
		return err
	}
	size := int64(0)
	for _, e := range g.extents {
		g.kept.begins[e] = size
		size += int64(sum(e.mapped))
	}
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(file.Fd()), 0, 0, max(size, 1))
	}
	failed := err != nil && !errors.Is(err, unix.EOPNOTSUPP)
	if !failed {
		var disk *fs.PathError
		err = b.throughDisk(g, true)
		failed = errors.As(err, &disk)
	}
	if failed {
		return &backends.NotKeptError{Tag: g.tag, Size: size, Folder: filepath.Dir(file.Name()), Reason: err}
	}
	return err
}

// part is some of an extent's bytes.
type part struct {
	e            *extent
	offset, size int
}

// throughDisk copies in parts: while the bus has one, the file has the one before.
func (b *pausingFloor) throughDisk(g *group, out bool) (failed error) {
	var parts []part
	most := 0 // bytes of one
	for _, e := range g.extents {
		for at, size := 0, sum(e.mapped); at < size; at += diskChunk {
			parts = append(parts, part{e, at, min(diskChunk, size-at)})
			most = max(most, min(diskChunk, size-at))
		}
	}
	var chunks [2]backends.Address
	for i := range min(len(chunks), len(parts)) {
		at, err := b.lockedFor(g, most)
		if err != nil {
			return err
		}
		defer func() {
			if !refused(failed) { // or the device may still write there
				failed = errors.Join(failed, b.givePinnedBack(at))
			}
		}()
		chunks[i] = at
	}
	return b.onStreams(g, func(streams map[*device]backends.Stream) error {
		enqueue := func(i int) error {
			p := parts[i]
			return b.cross(p.e, p.offset, chunks[i%2], p.size, streams[p.e.device], out)
		}
		onDisk := func(i int) (err error) {
			p := parts[i]
			if at := g.kept.begins[p.e] + int64(p.offset); out {
				_, err = g.kept.file.WriteAt(hostBytes(chunks[i%2], p.size), at)
			} else {
				_, err = g.kept.file.ReadAt(hostBytes(chunks[i%2], p.size), at)
			}
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("somebody has shortened the file that has the contents of %q: %w", g.tag, err)
			}
			return err
		}
		wait := func(i int) error {
			//mutate:skip a file is written before the contents are there
			return b.Synchronize(parts[i].e.device.number, streams[parts[i].e.device])
		}
		if out {
			return inTurns(len(parts), enqueue, wait, onDisk)
		}
		return inTurns(len(parts), onDisk, enqueue, wait)
	})
}

// inTurns takes three steps for each of n parts. The first one for a part comes between the second and the third for
// the part before.
func inTurns(n int, first, second, third func(int) error) error {
	if n == 0 {
		return nil
	}
	err := first(0)
	for i := 0; i < n && err == nil; i++ {
		err = second(i)
		if err == nil && i+1 < n {
			err = first(i + 1)
		}
		if err == nil {
			err = third(i)
		}
	}
	return err
}
