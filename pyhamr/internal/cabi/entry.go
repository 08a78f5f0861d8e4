package cabi

// #include "entry.h"
// void hamr_restore_limits(void);
import "C"

// A handler without SA_ONSTACK runs on the stack that it interrupts. A goroutine's has a few KiB, and
// no guard page: a handler that needs more writes over other memory. The stack of a thread's calls stays
// the thread's, and the build sets gcshrinkstackoff.
const stackForHandlers = 64 << 10

//export hamrReserveStack
func hamrReserveStack() { reserve(0) }

// reserve makes the stack grow by the size of its own frame, which nobody writes to.
//
//go:noinline
func reserve(n int) (sum byte) {
	if n == 0 {
		return 0
	}
	var room [stackForHandlers]byte
	for i := range n {
		room[i*i%len(room)]++
		sum += room[i]
	}
	return sum
}

func init() { C.hamr_restore_limits() }
