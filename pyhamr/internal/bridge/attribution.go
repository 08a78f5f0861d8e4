package bridge

import (
	"fmt"
	"sync"

	"hamr/backends"
	"hamr/gobuffer"
)

// recording is the one recording of this copy of the library.
var recording struct {
	mutex    sync.Mutex
	recorder *gobuffer.Recorder
}

// MemorySnapshot describes the memory that is in use, what was recorded of it, and how pools are divided,
// in rows that begin with what they are: "a" an allocation (library, allocator, device, address, bytes,
// stream, thread, nanoseconds since 1970, stack), "e" an event (its action, then the same), "d" how many
// events were dropped, and "s" a segment (allocator, device, address, bytes), with the "b" behind it that
// are its blocks (address, bytes, whether somebody has it).
func MemorySnapshot() (rows Rows, err error) {
	defer Guard(&err)
	DropSpares()
	recording.mutex.Lock()
	recorder := recording.recorder
	recording.mutex.Unlock()
	events, dropped := recorder.Events()
	rows = append(rows, []any{"d", dropped})
	for _, e := range events {
		rows = append(rows, []any{"e", e.Action, e.Library.String(), e.Region.Allocator, e.Region.Device, e.Region.Address,
			e.Size, e.Stream, e.Thread, e.Time, e.Stack})
	}
	for _, a := range Runtime.Allocations() {
		rows = append(rows, []any{"a", a.Library.String(), a.Region.Allocator, a.Region.Device, a.Region.Address, a.Size,
			a.Stream, a.Thread, a.Time, a.Stack})
	}
	for _, g := range Runtime.Segments() {
		rows = append(rows, []any{"s", g.Allocator, g.Device, g.Address, g.Size})
		for _, b := range g.Blocks {
			rows = append(rows, []any{"b", b.Address, b.Size, b.Lent})
		}
	}
	return rows, nil
}

// StartRecording begins to write down what is done with memory; stack returns the number of the calling thread's stack.
func StartRecording(most int, stack func() int64) (err error) {
	defer Guard(&err)
	DropSpares()
	recording.mutex.Lock()
	defer recording.mutex.Unlock()
	started, err := Runtime.Record(most, stack)
	if err == nil {
		recording.recorder = started
	}
	return err
}

// StopRecording ends that, and forgets what was written down.
func StopRecording() (err error) {
	defer Guard(&err)
	recording.mutex.Lock()
	defer recording.mutex.Unlock()
	recording.recorder.Stop()
	recording.recorder = nil
	return nil
}

var trackers = newNumbered[*gobuffer.Tracker](func(number uint64) error {
	return fmt.Errorf("tracker %#x is not this process's, or has ended", number)
})

// Track begins to count allocations: of one library or, for "", of any, on a device of a backend, or for
// "" of any; device gobuffer.AnyDevice is any.
func Track(library, backend string, device int) (number uint64, err error) {
	defer Guard(&err)
	l, err := gobuffer.LibraryNamed(library)
	if err != nil {
		return 0, err
	}
	DropSpares()
	t, err := Runtime.Track(gobuffer.Of{Library: l, Backend: backend, Device: device})
	if err != nil {
		return 0, err
	}
	return trackers.keep(t), nil
}

// ReadTracker returns bytes and number of the allocations so far, bytes freed, and by how many bytes there were more in
// use at most than at the start; last ends it.
func ReadTracker(number uint64, last bool) (_ Rows, err error) {
	defer Guard(&err)
	DropSpares()
	find, read := trackers.get, (*gobuffer.Tracker).Read
	if last {
		find, read = trackers.take, (*gobuffer.Tracker).Stop
	}
	t, err := find(number)
	if err != nil {
		return nil, err
	}
	now := read(t)
	return one(now.Allocated, now.Allocations, now.Freed, now.Peak), nil
}

// LimitLibrary limits what a library has in use on a device, on the host, or with no backend's name everywhere.
func LimitLibrary(library, backend string, device int, bytes int64) (err error) {
	defer Guard(&err)
	l, err := gobuffer.LibraryNamed(library)
	if err != nil {
		return err
	}
	DropSpares() // which count as in use, and are not kept while there is a limit
	return Runtime.LimitLibrary(l, backend, device, bytes)
}

// LibraryLimits describes these limits: library, backend or "", device, limit.
func LibraryLimits() (rows Rows, err error) {
	defer Guard(&err)
	for _, l := range Runtime.LibraryLimits() {
		rows = append(rows, []any{l.Library.String(), l.Backend, l.Device, l.Limit})
	}
	return rows, nil
}

// LibraryTotals describes who has memory: library, allocator, device, number of allocations, bytes in them.
func LibraryTotals() (rows Rows, err error) {
	defer Guard(&err)
	type place struct {
		library   gobuffer.Library
		allocator backends.Allocator
		device    int
	}
	type total struct{ count, bytes int }
	DropSpares()
	totals := map[place]total{}
	for _, a := range Runtime.Allocations() {
		p := place{a.Library, a.Region.Allocator, a.Region.Device}
		t := totals[p]
		totals[p] = total{t.count + 1, t.bytes + a.Size}
	}
	for p, t := range totals {
		rows = append(rows, []any{p.library.String(), p.allocator, p.device, t.count, t.bytes})
	}
	return rows, nil
}
