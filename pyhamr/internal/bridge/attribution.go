package bridge

import (
	"fmt"
	"strings"
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
// in lines that begin with what they are: "a" an allocation (library, allocator, device, address, bytes,
// stream, thread, nanoseconds since 1970, stack), "e" an event (its action, then the same), "d" how many
// events were dropped, and "s" a segment (allocator, device, address, bytes), with the "b" behind it that
// are its blocks (address, bytes, 1 if somebody has it).
func MemorySnapshot() (text string, err error) {
	defer Guard(&err)
	DropSpares()
	var t strings.Builder
	recording.mutex.Lock()
	recorder := recording.recorder
	recording.mutex.Unlock()
	events, dropped := recorder.Events()
	fmt.Fprintln(&t, "d", dropped)
	for _, e := range events {
		fmt.Fprintln(&t, "e", int(e.Action), e.Library, int(e.Region.Allocator), e.Region.Device, uint64(e.Region.Address), e.Size,
			uint64(e.Stream), e.Thread, e.Time, e.Stack)
	}
	for _, a := range Runtime.Allocations() {
		fmt.Fprintln(&t, "a", a.Library, int(a.Region.Allocator), a.Region.Device, uint64(a.Region.Address), a.Size, uint64(a.Stream),
			a.Thread, a.Time, a.Stack)
	}
	for _, g := range Runtime.Segments() {
		fmt.Fprintln(&t, "s", int(g.Allocator), g.Device, uint64(g.Address), g.Size)
		for _, b := range g.Blocks {
			lent := 0
			if b.Lent {
				lent = 1
			}
			fmt.Fprintln(&t, "b", uint64(b.Address), b.Size, lent)
		}
	}
	return t.String(), nil
}

// StartRecording begins to write down what is done with memory; stack returns the number of the calling
// thread's stack.
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

// ReadTracker returns what was counted so far.
func ReadTracker(number uint64, last bool) (_ gobuffer.Tracked, err error) {
	defer Guard(&err)
	DropSpares()
	if last {
		t, err := trackers.take(number)
		return t.Stop(), err
	}
	t, err := trackers.get(number)
	return t.Read(), err
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

// LibraryLimits describes these limits in lines: library, backend or "-", device, limit, bytes in use.
func LibraryLimits() string {
	var text strings.Builder
	for _, l := range Runtime.LibraryLimits() {
		backend := l.Backend
		if backend == "" {
			backend = "-"
		}
		fmt.Fprintln(&text, l.Library, backend, l.Device, l.Limit, l.Current)
	}
	return text.String()
}

// LibraryTotals describes who has memory, in lines: library, allocator, device, number of allocations,
// bytes in them.
func LibraryTotals() string {
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
	var text strings.Builder
	for p, t := range totals {
		fmt.Fprintln(&text, p.library, int(p.allocator), p.device, t.count, t.bytes)
	}
	return text.String()
}
