package capi

// #include "hamr/store_functions.h"
import "C"

import (
	"unsafe"

	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

func failed(err error) *C.hamr_error { return (*C.hamr_error)(cabi.Failure(err)) }

func described(array *C.hamr_array) *bridge.Descriptor {
	return (*bridge.Descriptor)(unsafe.Pointer(array))
}

//export hamrOpenFrame
func hamrOpenFrame(frame unsafe.Pointer, bytes C.size_t, descriptors *C.int, count C.int32_t,
	result *C.hamr_array) *C.hamr_error {
	list := make([]int, count)
	for i, number := range unsafe.Slice(descriptors, count) {
		list[i] = int(number)
	}
	return failed(bridge.OpenElements(C.GoBytes(frame, C.int(bytes)), list, described(result)))
}
