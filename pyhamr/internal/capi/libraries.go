package capi

// #include <stddef.h>
// #include <stdint.h>
// #include "granted.h"
// #include "hamr/functions.h"
import "C"

import (
	"unsafe"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

// hamrAllocateForAtOnce is for a library that hamr serves; zero where there is no memory at once.
//
//export hamrAllocateForAtOnce
func hamrAllocateForAtOnce(library, device C.int32_t, size, stream C.uint64_t) C.uint64_t {
	return C.uint64_t(bridge.AllocateForAtOnce(int(library), int(device), int(size), backends.Stream(stream)))
}

// hamrAllocateFor may wait; where there is no memory it returns zero and says why, if there is room.
//
//export hamrAllocateFor
func hamrAllocateFor(library, device C.int32_t, size, stream C.uint64_t, why *C.char, room C.size_t) C.uint64_t {
	at, err := bridge.AllocateFor(int(library), int(device), int(size), backends.Stream(stream))
	say(err, why, room)
	return C.uint64_t(at)
}

func say(err error, why *C.char, room C.size_t) {
	if err != nil && room > 0 {
		text := unsafe.Slice((*byte)(unsafe.Pointer(why)), int(room))
		text[copy(text[:room-1], err.Error())] = 0
	}
}

// hamrPartFor is for a thread that is in a use of parts: whether that is one of the device's. Then *memory is a part,
// or zero where none fits, and it says why if there is room.
//
//export hamrPartFor
func hamrPartFor(use C.uint64_t, device C.int32_t, size C.uint64_t, memory *C.uint64_t, why *C.char,
	room C.size_t) C.int32_t {
	at, is, err := bridge.PartFor(uint64(use), int(device), int(size))
	say(err, why, room)
	if *memory = C.uint64_t(at); is {
		return 1
	}
	return 0
}

//export hamrFreeFor
func hamrFreeFor(address C.uint64_t) { _ = bridge.FreeFor(backends.Address(address)) }

//export hamrUseFor
func hamrUseFor(address, stream C.uint64_t) {
	_ = bridge.UseFor(backends.Address(address), backends.Stream(stream))
}

//export hamrEnterTag
func hamrEnterTag(name *C.char, before *C.int64_t) *C.hamr_error {
	was, err := bridge.EnterTag(C.GoString(name))
	*before = C.int64_t(was)
	return (*C.hamr_error)(cabi.Failure(err))
}

//export hamrLeaveTag
func hamrLeaveTag(before C.int64_t) { bridge.LeaveTag(int(before)) }

//export hamrPause
func hamrPause(name, keep, folder *C.char) *C.hamr_error {
	return (*C.hamr_error)(cabi.Failure(bridge.Pause(C.GoString(name), C.GoString(keep), C.GoString(folder))))
}

//export hamrResume
func hamrResume(name *C.char) *C.hamr_error {
	return (*C.hamr_error)(cabi.Failure(bridge.Resume(C.GoString(name))))
}

func init() {
	bridge.ThreadTag = func(tag int64) int64 { return int64(C.capi_thread_tag(C.int64_t(tag))) }
	bridge.ThreadUse = func(use int64) int64 { return int64(C.capi_thread_use(C.int64_t(use))) }
	bridge.GrantedAgain = func() int64 { return int64(C.granted_handed_out()) }
	bridge.Runtime.KeepGranted(func() bool { return C.granted_drop() != 0 })
	bridge.GrantedStream = func(device int, s backends.Stream, stays bool) {
		var on C.int
		if stays {
			on = 1
		}
		C.granted_stream(C.int32_t(device), C.uint64_t(s), on)
	}
	bridge.CuPyMisses = uintptr(C.capi_cupy_misses)
	bridge.KeepFreed = func(by int) {
		_, trace, _ := bridge.Runtime.Words()
		C.granted_use(C.int(by), C.uintptr_t(trace), C.uintptr_t(bridge.Runtime.WatchedWord()))
	}
}
