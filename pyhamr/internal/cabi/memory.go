package cabi

// #include "constant.h"
// #include "hamr/functions.h"
// void hamr_call_finished(hamr_finished_function finished, uint64_t key);
import "C"

import (
	"fmt"
	"math"
	"os"
	"time"
	"unsafe"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/pyhamr/internal/bridge"
)

func descriptor(a *C.hamr_array) *bridge.Descriptor {
	return (*bridge.Descriptor)(unsafe.Pointer(a))
}

func truth(is bool) C.int32_t {
	if is {
		return 1
	}
	return 0
}

func release(key C.uint64_t, finished C.hamr_finished_function) func() {
	if key == 0 {
		return nil
	}
	return func() { C.hamr_call_finished(finished, key) }
}

// complain is for destructors, which have nobody to raise to.
func complain(err error) {
	if err := bridge.TellLater(err); err != nil {
		fmt.Fprintln(os.Stderr, "hamr: while releasing memory:", err)
	}
}

//export hamrLocate
func hamrLocate(address C.uint64_t, found *C.hamr_location) *C.hamr_error {
	l, err := bridge.Locate(uint64(address))
	*found = C.hamr_location{base: C.uint64_t(l.Base), size: C.int64_t(l.Size), allocator: C.int32_t(l.Allocator),
		device: C.int32_t(l.Device)}
	return failure(err)
}

//export hamrFreeFunction
func hamrFreeFunction(allocator C.int32_t) unsafe.Pointer {
	return pointer(all.FreeFunction(backends.Allocator(allocator)))
}

// patience is the longest that a Duration can be where C asks for more.
func patience(milliseconds C.int64_t) time.Duration {
	return time.Duration(max(0, min(int64(milliseconds), math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

//export hamrRetireStream
func hamrRetireStream(stream C.uint64_t, over *C.int32_t) *C.hamr_error {
	is, err := bridge.RetireNamed(backends.Stream(stream), *over != 0)
	*over = truth(is)
	return failure(err)
}
