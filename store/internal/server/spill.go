package server

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// spilledFile is a file without a name: it is gone when the server is.
type spilledFile struct {
	File  *os.File
	check uint32
	bytes int64
}

func (f *spilledFile) close() {
	wire.Unrecord(int(f.File.Fd()))
	_ = f.File.Close()
}

func (f *spilledFile) same(check uint32) error {
	if check != f.check {
		return fmt.Errorf("the file holds other bytes than were written: a checksum of %#x, not %#x", check, f.check)
	}
	return nil
}

// OpenSpill makes a file that nobody else finds in a folder.
func OpenSpill(folder string) (*os.File, error) {
	descriptor, err := unix.Open(folder, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(descriptor), filepath.Join(folder, "spilled")), nil
	}
	// Not every file system has such files.
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

// copyChecked copies bytes from the start of one file to another's.
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

// Spill writes a unit to a file and lets go of its memory. The lock is let go of meanwhile; who
// takes a lease then ends it.
func (s *Server) Spill(u *unit) error {
	u.Moving = true
	u.list()
	u.retire()
	source := u.Descriptor.Retain()
	spilled := &spilledFile{bytes: u.size}
	if u.onDevice() {
		spilled.bytes = u.places[0].Bytes
	}
	u.domain.leaving += u.size
	var err error
	s.pause(func() {
		err = s.save(spilled, u, source.Number)
		wire.Crash("server-spilled")
		source.Release()
	})
	u.domain.leaving -= u.size
	u.Moving = false
	s.Moved.Broadcast()
	switch {
	case u.objects == 0:
		if err == nil {
			spilled.close()
		}
		s.free(u)
		return nil
	case err != nil:
		u.list()
		return err
	case u.blockers > 0:
		spilled.close()
		u.list()
		return nil
	}
	u.Spilled = spilled
	u.Descriptor.Release()
	u.Descriptor = nil
	u.list()
	u.domain.used -= u.size
	s.SpilledBytes += u.size
	u.domain.spilled += u.size
	s.spills++
	// Who has the slab mapped has that memory still; it comes back as another one.
	if old := (&unit{id: u.id, domain: u.domain, size: u.size, gone: true, knownBy: u.knownBy}); len(old.knownBy) > 0 {
		for c := range old.knownBy {
			delete(c.known, u)
			c.known[old] = struct{}{}
			c.gone = append(c.gone, old.id)
		}
		u.domain.lingering += u.size
		s.lingering[old.id] = old
	}
	delete(s.units, u.id)
	u.knownBy, u.id = nil, protocol.NewID()
	s.units[u.id] = u
	for _, o := range u.places {
		if o != nil {
			s.tell(protocol.Event{Kind: protocol.Spilled, ID: o.id})
		}
	}
	return nil
}

// save writes a unit's memory to a file of the server's.
func (s *Server) save(f *spilledFile, u *unit, descriptor int) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("spilling to %s: %w", s.Options.Spill, err)
		}
	}()
	if f.File, err = s.OpenSpill(s.Options.Spill); err != nil {
		return err
	}
	wire.Record(int(f.File.Fd()))
	if u.onDevice() {
		f.check, err = s.devices.save(f.File, u.domain.device, descriptor, u.size, f.bytes)
	} else {
		f.check, err = copyChecked(int(f.File.Fd()), descriptor, f.bytes)
	}
	if err != nil {
		f.close()
	}
	return err
}

// restore brings a unit's memory back. The lock is let go of meanwhile.
func (s *Server) restore(u *unit) error {
	for u.Moving {
		s.waitMoved()
	}
	if u.Spilled == nil {
		return nil
	}
	u.Moving = true
	defer func() {
		u.Moving = false
		s.Moved.Broadcast()
		if u.objects == 0 {
			s.free(u)
		} else {
			u.list()
		}
	}()
	swaps, err := s.roomToRestore(u)
	if err != nil {
		return err
	}
	if swaps {
		s.swapping = true
		defer func() { s.swapping = false }()
	}
	file := u.Spilled
	var number int
	err = s.retrying(func() (err error) {
		s.pause(func() {
			if u.onDevice() {
				number, err = s.devices.load(file, u.domain.device, u.size)
			} else {
				number, err = readSpilled(file)
			}
			wire.Crash("server-restored")
		})
		return err
	})
	if err != nil {
		u.domain.used -= u.size
		if errors.As(err, new(*protocol.FullError)) {
			return err
		}
		return &protocol.SystemError{Problem: fmt.Sprintf("bringing back what was spilled to %s: %v", s.Options.Spill, err)}
	}
	u.Descriptor = wire.NewDescriptor(number)
	u.Spilled, u.writable, u.replaced = nil, false, true
	file.close()
	s.SpilledBytes -= u.size
	u.domain.spilled -= u.size
	s.restored++
	for _, o := range u.places {
		if o != nil {
			s.tell(protocol.Event{Kind: protocol.Restored, ID: o.id})
		}
	}
	if !swaps {
		return nil
	}
	if err = s.room(u.domain, 0); err != nil {
		u.Moving = false
		u.list()
		_ = s.Spill(u)
	}
	return err
}

// roomToRestore makes room for a unit that is in a file. Where nothing else can be spilled, as the files have no room,
// the unit comes back beyond the limit, and gives its file's room to others: then it swaps, one unit at a time.
func (s *Server) roomToRestore(u *unit) (swaps bool, err error) {
	for {
		err = s.room(u.domain, u.size)
		//mutate:always what is in a full folder does not come back
		if !errors.As(err, new(*protocol.SystemError)) {
			return false, err
		}
		if !s.swapping {
			u.domain.count(u.size)
			return true, nil
		}
		s.waitMoved()
	}
}

func readSpilled(f *spilledFile) (descriptor int, err error) {
	writable, err := host.NewSharedFile(int(f.bytes))
	if err != nil {
		return -1, err
	}
	defer unix.Close(writable)
	check, err := copyChecked(writable, int(f.File.Fd()), f.bytes)
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
