package shares

import (
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// readLane is another process's lane, which this one reads. The watcher alone uses it.
//
// It is read as a file: whatever the other process does to its memory, a read tells, where a mapping would fault.
type readLane struct {
	of      *leases
	file    int
	number  int32
	process int      // a descriptor that tells when the process has ended
	waiting []*lease // that have ended, and of which the process had the memory open
}

const (
	// mostLanes is how many lanes a process reads, and mostOfOne how many of one other process, which has
	// another one after an exec, and when it has given one up.
	mostLanes = 128
	mostOfOne = 8
)

// slots are numbers of a process's shares, of which a lane has a word each.
type slots struct {
	free       []int
	used       int // how many there have been
	generation uint64
}

// take returns a slot, 0 if all are in use, and a generation that no share had before.
func (s *slots) take() (slot int, generation uint64) {
	s.generation++
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
		return slot, s.generation
	}
	if s.used == laneWords-1 {
		return 0, s.generation
	}
	s.used++
	return s.used, s.generation
}

func (s *slots) give(slot int) {
	if slot != 0 {
		s.free = append(s.free, slot)
	}
}

// read begins to read a lane, whose file is its own unless there is an error: then its process goes on by messages.
func (l *leases) read(number int32, file int) error {
	same := 0
	for _, each := range l.lanes {
		if each.number == number {
			same++
		}
	}
	if number <= 0 || len(l.lanes) >= mostLanes || same >= mostOfOne {
		return errors.New("too many lanes, or one of a process that cannot be seen")
	}
	// Only the memory of a process has seals: no reading of it waits for anything.
	if seals, err := unix.FcntlInt(uintptr(file), unix.F_GET_SEALS, 0); err != nil || seals&laneSeals != laneSeals {
		return errors.New("no lane")
	}
	process, err := unix.PidfdOpen(int(number), unix.PIDFD_NONBLOCK)
	if err != nil {
		return err
	}
	lane := &readLane{of: l, file: file, number: number, process: process}
	leaseWatcher.mu.Lock()
	err = leaseWatcher.add(process, watched{lane: lane})
	leaseWatcher.mu.Unlock()
	if err != nil {
		return errors.Join(err, unix.Close(process))
	}
	// From here on the other process relies on it.
	if _, err := unix.Pwrite(file, binary.NativeEndian.AppendUint64(nil, laneIsRead), 0); err != nil {
		leaseWatcher.forget(process)
		return err
	}
	l.lanes = append(l.lanes, lane)
	return nil
}

// has reports whether the process had a lease's memory open when it was last heard of.
func (a *readLane) has(l *lease) bool {
	var word [8]byte
	n, err := unix.Pread(a.file, word[:], int64(l.slot)*8)
	return err != nil || n != len(word) || binary.NativeEndian.Uint64(word[:]) == l.generation
}

// over is told that the process has ended.
func (a *readLane) over() {
	leaseWatcher.forget(a.process)
	_ = unix.Close(a.file)
	a.of.lanes = slices.DeleteFunc(a.of.lanes, func(each *readLane) bool { return each == a })
	for _, each := range a.waiting {
		each.done()
	}
}
