package server

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/wire"
)

// deviceSpill copies devices' memory to files and back, for a server that has descriptors only: it maps the memory
// for as long as that takes.
type deviceSpill struct {
	runtime *gobuffer.Runtime
	places  map[backends.UUID]backends.Region
}

// unreadableError is that of one object's memory, where a file's would be that of all.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

const devicePart = 8 << 20 // bytes that are copied at a time

// newDeviceSpill knows the devices that are there now; none of them is touched.
func newDeviceSpill(r *gobuffer.Runtime) (*deviceSpill, error) {
	places := map[backends.UUID]backends.Region{}
	EachDevice(r, func(id backends.UUID, at backends.Region) bool {
		if _, known := places[id]; !known {
			places[id] = at
		}
		return true
	})
	if len(places) == 0 {
		return nil, &backends.UnavailableError{Backend: "store", Reason: "this process has no device whose memory it can map, so that it could spill it"}
	}
	return &deviceSpill{r, places}, nil
}

// spills reports whether it can copy a device's memory.
func (d *deviceSpill) spills(device backends.UUID) bool {
	if d == nil {
		return false
	}
	_, known := d.places[device]
	return known
}

// save writes the first bytes of memory that a descriptor is of.
func (d *deviceSpill) save(to *os.File, device backends.UUID, descriptor int, size, bytes int64) (check uint32, err error) {
	at := d.places[device]
	memory, err := d.runtime.MapShared(at.Allocator, at.Device, descriptor, int(size), true)
	if err != nil {
		return 0, &unreadableError{err}
	}
	elements, end, err := d.elements(memory, bytes)
	if err != nil {
		return 0, &unreadableError{err}
	}
	part := make([]byte, min(bytes, devicePart))
	for done := int64(0); done < bytes && err == nil; done += int64(len(part)) {
		part = part[:min(bytes-done, int64(len(part)))]
		if err = elements.Get(int(done), part); err != nil {
			err = &unreadableError{err}
			break
		}
		check = crc32.Update(check, castagnoli, part)
		_, err = to.WriteAt(part, done)
	}
	return check, errors.Join(err, end())
}

// load makes memory of a device's, of what save has written, and returns its descriptor.
func (d *deviceSpill) load(f *spilledFile, device backends.UUID, size int64) (descriptor int, err error) {
	at := d.places[device]
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
		if _, err = f.File.ReadAt(part, done); err != nil {
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

// elements are the first bytes of a mapping, which ends with them.
func (d *deviceSpill) elements(m *gobuffer.Memory, bytes int64) (elements *gobuffer.Buffer[uint8], end func() error, err error) {
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

// EachDevice goes over the devices whose memory a runtime can map, until f returns false.
func EachDevice(r *gobuffer.Runtime, f func(id backends.UUID, at backends.Region) bool) {
	for _, a := range backends.Allocators() {
		if a.Facts().Kind != backends.DeviceOnly {
			continue
		}
		b, err := r.Backend(a)
		if err != nil {
			continue
		}
		_, shares := backends.As[backends.Sharer](b)
		identified, ok := backends.As[backends.Identified](b)
		if !shares || !ok {
			continue
		}
		count, err := b.DeviceCount()
		if err != nil {
			continue
		}
		for device := range count {
			id, err := identified.Identity(device)
			if err == nil && !f(id, backends.Region{Allocator: a, Device: device}) {
				return
			}
		}
	}
}
