package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"math"
	"time"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// patience is the longest that a Duration can be where C asks for more.
func patience(milliseconds C.int64_t) time.Duration {
	return time.Duration(max(0, min(int64(milliseconds), math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

//export hamrNewStream
func hamrNewStream(backend *C.constant_char, device C.int32_t, stream *C.uint64_t) *C.hamr_error {
	made, err := bridge.NewStream(goString(backend), int(device))
	*stream = C.uint64_t(made)
	return failure(err)
}

//export hamrDestroyStream
func hamrDestroyStream(backend *C.constant_char, device C.int32_t, stream C.uint64_t) *C.hamr_error {
	return failure(bridge.DestroyStream(goString(backend), int(device), backends.Stream(stream)))
}

//export hamrRetireStream
func hamrRetireStream(stream C.uint64_t, over *C.int32_t) *C.hamr_error {
	is, err := bridge.RetireNamed(backends.Stream(stream), *over != 0)
	*over = truth(is)
	return failure(err)
}

//export hamrResolveStream
func hamrResolveStream(backend *C.constant_char, device C.int32_t, stream C.uint64_t, resolved *C.uint64_t) *C.hamr_error {
	same, err := bridge.ResolveStream(goString(backend), int(device), backends.Stream(stream))
	*resolved = C.uint64_t(same)
	return failure(err)
}

//export hamrStreamDevice
func hamrStreamDevice(backend *C.constant_char, stream C.uint64_t, device *C.int32_t) *C.hamr_error {
	found, err := bridge.StreamDevice(goString(backend), backends.Stream(stream))
	*device = C.int32_t(found)
	return failure(err)
}

//export hamrStreamIdle
func hamrStreamIdle(backend *C.constant_char, device C.int32_t, stream C.uint64_t, idle *C.int32_t) *C.hamr_error {
	is, err := bridge.StreamIdle(goString(backend), int(device), backends.Stream(stream))
	*idle = truth(is)
	return failure(err)
}

//export hamrWaitStream
func hamrWaitStream(backend *C.constant_char, device C.int32_t, stream C.uint64_t, milliseconds C.int64_t, over *C.int32_t) *C.hamr_error {
	is, err := bridge.WaitStream(goString(backend), int(device), backends.Stream(stream), patience(milliseconds))
	*over = truth(is)
	return failure(err)
}

//export hamrStreamWaitEvent
func hamrStreamWaitEvent(backend *C.constant_char, device C.int32_t, stream, event C.uint64_t) *C.hamr_error {
	return failure(bridge.StreamWaitEvent(goString(backend), int(device), backends.Stream(stream), backends.Event(event)))
}

//export hamrRecordEvent
func hamrRecordEvent(backend *C.constant_char, device C.int32_t, stream C.uint64_t, event *C.uint64_t) *C.hamr_error {
	made, err := bridge.RecordEvent(goString(backend), int(device), backends.Stream(stream))
	*event = C.uint64_t(made)
	return failure(err)
}

//export hamrRecordTimedEvent
func hamrRecordTimedEvent(backend *C.constant_char, device C.int32_t, stream C.uint64_t, event *C.uint64_t) *C.hamr_error {
	made, err := bridge.RecordTimedEvent(goString(backend), int(device), backends.Stream(stream))
	*event = C.uint64_t(made)
	return failure(err)
}

//export hamrElapsed
func hamrElapsed(backend *C.constant_char, device C.int32_t, from, to C.uint64_t, nanoseconds *C.int64_t) *C.hamr_error {
	elapsed, err := bridge.Elapsed(goString(backend), int(device), backends.Event(from), backends.Event(to))
	*nanoseconds = C.int64_t(elapsed.Nanoseconds())
	return failure(err)
}

//export hamrDestroyEvent
func hamrDestroyEvent(backend *C.constant_char, device C.int32_t, event C.uint64_t) *C.hamr_error {
	return failure(bridge.DestroyEvent(goString(backend), int(device), backends.Event(event)))
}

//export hamrEventDone
func hamrEventDone(backend *C.constant_char, device C.int32_t, event C.uint64_t, done *C.int32_t) *C.hamr_error {
	is, err := bridge.EventDone(goString(backend), int(device), backends.Event(event))
	*done = truth(is)
	return failure(err)
}

//export hamrWaitEvent
func hamrWaitEvent(backend *C.constant_char, device C.int32_t, event C.uint64_t, milliseconds C.int64_t, over *C.int32_t) *C.hamr_error {
	is, err := bridge.WaitEvent(goString(backend), int(device), backends.Event(event), patience(milliseconds))
	*over = truth(is)
	return failure(err)
}
