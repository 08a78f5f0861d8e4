package cabi

// #include <stdint.h>
// static int64_t call_stack_function(uint64_t function) { return ((int64_t (*)(void))(uintptr_t)function)(); }
import "C"

import "hamr/pyhamr/internal/bridge"

// StartChecking is the bridge's, with such an address.
func StartChecking(most int64, function uint64) error {
	if function == 0 {
		return bridge.StartChecking(most, nil)
	}
	return bridge.StartChecking(most, func() int64 { return int64(C.call_stack_function(C.uint64_t(function))) })
}

// StartRecording is the bridge's, with the address of a C function that returns the number of the
// calling thread's stack, or 0.
func StartRecording(most int, function uint64) error {
	if function == 0 {
		return bridge.StartRecording(most, nil)
	}
	return bridge.StartRecording(most, func() int64 { return int64(C.call_stack_function(C.uint64_t(function))) })
}
