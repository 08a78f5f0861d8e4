package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"unsafe"

	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

var (
	_ [unsafe.Sizeof(C.hamr_sharing{})]byte         = [unsafe.Sizeof(bridge.Sharing{})]byte{}
	_ [unsafe.Sizeof(C.hamr_opened_elements{})]byte = [unsafe.Sizeof(bridge.Opened{})]byte{}
)

//export hamrOpenElements
func hamrOpenElements(frame *C.constant_void, bytes C.int64_t, count C.int32_t, descriptors *C.constant_int32,
	result *C.hamr_array, opened *C.hamr_opened_elements) *C.hamr_error {
	if bytes < 0 || count < 0 {
		return failure(&gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "bytes and count", Value: "less than 0",
			Accepted: "as many as there are"})
	}
	lent := unsafe.Slice((*byte)(unsafe.Pointer(frame)), bytes)
	numbers := unsafe.Slice((*int32)(unsafe.Pointer(descriptors)), count)
	return failure(bridge.OpenShared(lent, numbers, descriptor(result), (*bridge.Opened)(unsafe.Pointer(opened))))
}

//export hamrPrepareShare
func hamrPrepareShare() { gobuffer.PrepareShare() }
