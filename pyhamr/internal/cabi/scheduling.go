package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

//export hamrCreateCached
func hamrCreateCached(allocator C.uint64_t, array *C.hamr_array) *C.hamr_error {
	return failure(bridge.CreateCached(uint64(allocator), descriptor(array)))
}

//export hamrTakeCachedStream
func hamrTakeCachedStream(backend *C.constant_char, device C.int32_t, stream *C.uint64_t) *C.hamr_error {
	taken, err := bridge.TakeCachedStream(goString(backend), int(device))
	*stream = C.uint64_t(taken)
	return failure(err)
}

//export hamrGiveCachedStream
func hamrGiveCachedStream(backend *C.constant_char, device C.int32_t, stream C.uint64_t) *C.hamr_error {
	return failure(bridge.GiveCachedStream(goString(backend), int(device), backends.Stream(stream)))
}

//export hamrRecordCachedEvent
func hamrRecordCachedEvent(backend *C.constant_char, device C.int32_t, stream C.uint64_t, event *C.uint64_t) *C.hamr_error {
	recorded, err := bridge.RecordCachedEvent(goString(backend), int(device), backends.Stream(stream))
	*event = C.uint64_t(recorded)
	return failure(err)
}

//export hamrGiveCachedEvent
func hamrGiveCachedEvent(backend *C.constant_char, device C.int32_t, event C.uint64_t, made C.int32_t) *C.hamr_error {
	return failure(bridge.GiveCachedEvent(goString(backend), int(device), backends.Event(event), int(made)))
}

//export hamrDropCachedEvent
func hamrDropCachedEvent(backend *C.constant_char, device C.int32_t, event C.uint64_t, made C.int32_t) *C.hamr_error {
	return failure(bridge.DropCachedEvent(goString(backend), int(device), backends.Event(event), int(made)))
}

//export hamrWaitForEvent
func hamrWaitForEvent(backend *C.constant_char, device C.int32_t, stream C.uint64_t, eventDevice C.int32_t, event C.uint64_t, waits *C.int32_t) *C.hamr_error {
	does, err := bridge.WaitForEvent(goString(backend), int(device), backends.Stream(stream), int(eventDevice), backends.Event(event))
	*waits = truth(does)
	return failure(err)
}
