// Package spill writes memory to files and reads it back.
package spill

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/devices"
	"hamr/store/internal/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// File holds the bytes of some memory. It has no name: it is gone when the server is.
type File struct {
	file   *os.File
	device backends.UUID // whose memory it was; zero is the host
	check  uint32
	bytes  int64
}

// Close frees the file's room.
func (f *File) Close() {
	wire.Unrecord(int(f.file.Fd()))
	_ = f.file.Close()
}

func (f *File) same(check uint32) error {
	if check != f.check {
		return fmt.Errorf("the file holds other bytes than were written: a checksum of %#x, not %#x", check, f.check)
	}
	return nil
}

// Open makes a file that nobody else finds in a folder.
func Open(folder string) (*os.File, error) {
	descriptor, err := unix.Open(folder, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(descriptor), filepath.Join(folder, "spilled")), nil
	}
	// Some file systems have no such files.
	file, err := os.CreateTemp(folder, ".hamr-spill-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// copyChecked copies bytes from the start of one file to another.
func copyChecked(to, from int, size int64) (check uint32, err error) {
	buffer := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; {
		part := buffer[:min(size-at, int64(len(buffer)))]
		n, err := unix.Pread(from, part, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return 0, fmt.Errorf("reading %d bytes at %d of %d: %w", len(part), at, size, ended(err))
		}
		part = part[:n]
		check = crc32.Update(check, castagnoli, part)
		for len(part) > 0 {
			n, err := unix.Pwrite(to, part, at)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 {
				return 0, fmt.Errorf("writing %d bytes at %d of %d: %w", len(part), at, size, ended(err))
			}
			part, at = part[n:], at+int64(n)
		}
	}
	return check, nil
}

func ended(err error) error {
	if err == nil {
		return fmt.Errorf("the file ended")
	}
	return err
}

// Memory is what a file is written from, or read into.
type Memory struct {
	Descriptor int
	Device     backends.UUID // zero is the host
	Size       int64         // bytes of the memory
	Filled     int64         // bytes of it that count, from its start
}

// Save writes memory to a file that is open, which it closes after an error. Devices copy the memory of devices.
func Save(to *os.File, m Memory, devices *Devices) (f *File, err error) {
	f = &File{file: to, device: m.Device, bytes: m.Filled}
	wire.Record(int(to.Fd()))
	if m.Device != (backends.UUID{}) {
		f.check, err = devices.save(to, m)
	} else {
		f.check, err = copyChecked(int(to.Fd()), m.Descriptor, m.Filled)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Load makes memory of some bytes, which holds what was saved, and returns its descriptor.
func (f *File) Load(size int64, devices *Devices) (descriptor int, err error) {
	if f.device != (backends.UUID{}) {
		return devices.load(f, size)
	}
	writable, err := host.NewSharedFile(int(f.bytes))
	if err != nil {
		return -1, err
	}
	defer unix.Close(writable)
	check, err := copyChecked(writable, int(f.file.Fd()), f.bytes)
	if err != nil {
		return -1, err
	}
	if err := f.same(check); err != nil {
		return -1, err
	}
	if _, err := host.SealShared(writable); err != nil {
		return -1, err
	}
	return host.ReadOnlyDescriptor(writable)
}

// Devices copies the memory of devices to files and back. The server has only descriptors of that memory: it maps the
// memory for as long as the copy takes.
type Devices struct {
	runtime *gobuffer.Runtime
	places  map[backends.UUID]backends.Region
}

// UnreadableError says that the memory of one object cannot be read. An error of a file concerns all objects.
type UnreadableError struct{ error }

func (e *UnreadableError) Unwrap() error { return e.error }

const devicePart = 8 << 20 // bytes that are copied at a time

// NewDevices finds the devices that are there now; it uses none of them.
func NewDevices(r *gobuffer.Runtime) (*Devices, error) {
	places := map[backends.UUID]backends.Region{}
	devices.Each(r, func(id backends.UUID, at backends.Region) bool {
		if _, known := places[id]; !known {
			places[id] = at
		}
		return true
	})
	if len(places) == 0 {
		return nil, &backends.UnavailableError{
			Backend: "store", Reason: "this process has no device whose memory it can map, so that it could spill it",
		}
	}
	return &Devices{r, places}, nil
}

// Copies reports whether it can copy a device's memory.
func (d *Devices) Copies(device backends.UUID) bool {
	if d == nil {
		return false
	}
	_, known := d.places[device]
	return known
}

// save writes the first bytes of memory to a file.
func (d *Devices) save(to *os.File, m Memory) (check uint32, err error) {
	at, bytes := d.places[m.Device], m.Filled
	memory, err := d.runtime.MapShared(at.Allocator, at.Device, m.Descriptor, int(m.Size), true)
	if err != nil {
		return 0, &UnreadableError{err}
	}
	elements, end, err := d.elements(memory, bytes)
	if err != nil {
		return 0, &UnreadableError{err}
	}
	part := make([]byte, min(bytes, devicePart))
	for done := int64(0); done < bytes && err == nil; done += int64(len(part)) {
		part = part[:min(bytes-done, int64(len(part)))]
		if err = elements.Get(int(done), part); err != nil {
			err = &UnreadableError{err}
			break
		}
		check = crc32.Update(check, castagnoli, part)
		_, err = to.WriteAt(part, done)
	}
	return check, errors.Join(err, end())
}

// load makes memory on a device, fills it with what save has written, and returns its descriptor.
func (d *Devices) load(f *File, size int64) (descriptor int, err error) {
	at := d.places[f.device]
	memory, descriptor, err := d.runtime.NewShared(at.Allocator, at.Device, int(size))
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			wire.CloseAll([]int{descriptor})
			descriptor = -1
		}
	}()
	elements, end, err := d.elements(memory, f.bytes)
	if err != nil {
		return descriptor, err
	}
	part, check := make([]byte, min(f.bytes, devicePart)), uint32(0)
	for done := int64(0); done < f.bytes && err == nil; done += int64(len(part)) {
		part = part[:min(f.bytes-done, int64(len(part)))]
		if _, err = f.file.ReadAt(part, done); err != nil {
			err = fmt.Errorf("reading %d bytes at %d of %d: %w", len(part), done, f.bytes, err)
			break
		}
		check = crc32.Update(check, castagnoli, part)
		err = elements.Put(int(done), part)
	}
	if err = errors.Join(err, end()); err == nil {
		err = f.same(check)
	}
	return descriptor, err
}

// elements are the first bytes of a mapping. To end them ends the mapping.
func (d *Devices) elements(m *gobuffer.Memory, bytes int64) (
	elements *gobuffer.Buffer[uint8], end func() error, err error,
) {
	layout, err := arrayiface.NewLayout(arrayiface.Uint8, []int{int(bytes)}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, m.Release())
	}
	at := m.Region()
	array := gobuffer.View(m, at.Address, layout, layout.Count(), false,
		gobuffer.Options{Allocator: at.Allocator, Device: at.Device, Transfer: gobuffer.SyncHost})
	if elements, err = gobuffer.Typed[uint8](array); err != nil {
		return nil, nil, errors.Join(err, array.Close())
	}
	return elements, array.Close, nil
}
