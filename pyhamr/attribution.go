package pyhamr

import (
	"fmt"

	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

// MemorySnapshot returns, in lines, what memory is in use and whose it is, what was recorded, and how
// pools are divided: see the bridge's.
//
//hamr:blocking
func MemorySnapshot() (string, error) { return bridge.MemorySnapshot() }

// StartRecording writes down what is done with memory, the newest most events. stack is the address of
// a C function that returns the number of the calling thread's stack, or 0.
func StartRecording(most int, stack uint64) (int, error) { return 0, cabi.StartRecording(most, stack) }

// StopRecording ends that, and forgets what was written down.
func StopRecording() (int, error) { return 0, bridge.StopRecording() }

// Track begins to count allocations of a library on a device of a backend, and returns a number for
// ReadTracker; "" is any library or backend, -2 any device and the host.
func Track(library, backend string, device int) (uint64, error) {
	return bridge.Track(library, backend, device)
}

// ReadTracker returns bytes and number of the allocations so far, bytes freed, and by how many bytes
// there were more in use at most than at the start; last ends it.
func ReadTracker(number uint64, last bool) (string, error) {
	t, err := bridge.ReadTracker(number, last)
	return fmt.Sprint(t.Allocated, t.Allocations, t.Freed, t.Peak), err
}

// LimitLibrary limits what a library has in use on a device of a backend, for "host" on the host, or for "" everywhere; -1 bytes is
// no limit.
//
//hamr:blocking
func LimitLibrary(library, backend string, device, bytes int) (int, error) {
	return 0, bridge.LimitLibrary(library, backend, device, int64(bytes))
}

// LibraryLimits returns these limits in lines of library, backend or "-", device, limit, bytes in use.
func LibraryLimits() string { return bridge.LibraryLimits() }

// LibraryTotals returns who has memory, in lines of library, allocator, device, number of allocations
// and bytes in them.
//
//hamr:blocking
func LibraryTotals() string { return bridge.LibraryTotals() }

// StartChecking keeps up to most bytes of freed memory, to see whether it is written to; stack is as for
// StartRecording.
func StartChecking(most int, stack uint64) (int, error) {
	return 0, cabi.StartChecking(int64(most), stack)
}

// CheckMemory looks at all memory that is kept, and returns what FoundMisuse does.
//
//hamr:blocking
func CheckMemory() (string, error) { return bridge.CheckMemory() }

// FoundMisuse returns writes to freed memory that were found since the last call, in lines: see the bridge's.
func FoundMisuse() (string, error) { return bridge.FoundMisuse() }

// AskedForStack waits for somebody who asks for a thread's stack: a number for AnswerStack, and the thread, or nothing.
//
//hamr:blocking
func AskedForStack(milliseconds int) string { return bridge.AskedForStack(milliseconds) }

// AnswerStack answers that, with a number of record_stacks'.
func AnswerStack(question uint64, stack int) int {
	bridge.AnswerStack(question, int64(stack))
	return 0
}

// ObservedByChecking says of each backend whether its work is looked at.
//
//hamr:blocking
func ObservedByChecking() (string, error) { return bridge.ObservedByChecking() }

// StopChecking ends the check, and returns what it found.
//
//hamr:blocking
func StopChecking() (string, error) { return bridge.StopChecking() }
