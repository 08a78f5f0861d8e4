package pyhamr

import (
	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

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

// LimitLibrary limits what a library has in use on a device of a backend, for "host" on the host, or for "" everywhere;
// -1 bytes is no limit.
//
//hamr:blocking
func LimitLibrary(library, backend string, device, bytes int) (int, error) {
	return 0, bridge.LimitLibrary(library, backend, device, int64(bytes))
}

// StartChecking keeps up to most bytes of freed memory, to see whether it is written to; stack is as for
// StartRecording.
func StartChecking(most int, stack uint64) (int, error) {
	return 0, cabi.StartChecking(int64(most), stack)
}

// AnswerStack answers that, with a number of record_stacks'.
func AnswerStack(question uint64, stack int) int {
	bridge.AnswerStack(question, int64(stack))
	return 0
}
