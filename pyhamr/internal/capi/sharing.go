package capi

// #include "store_calls.h"
import "C"

import (
	"unsafe"

	"hamr/pyhamr/internal/bridge"
)

//export hamrShareElements
func hamrShareElements(array *C.hamr_array, lease C.uint64_t, flags *C.uint32_t, frame unsafe.Pointer, bytes *C.size_t, descriptors *C.int, count *C.int32_t) *C.hamr_error {
	how := bridge.HowToShare{
		ReadOnly: *flags&C.HAMR_SHARE_READ_ONLY != 0,
		Copy:     *flags&C.HAMR_SHARE_COPY != 0,
		InPlace:  *flags&C.HAMR_SHARE_IN_PLACE != 0,
	}
	made, err := bridge.ShareElements(described(array), how, uint64(lease))
	if err != nil {
		return failed(err)
	}
	*bytes = C.size_t(copy(unsafe.Slice((*byte)(frame), 4096), made.Frame))
	for i, number := range made.Descriptors {
		unsafe.Slice(descriptors, 2)[i] = C.int(number)
	}
	*count = C.int32_t(len(made.Descriptors))
	*flags = 0
	if made.ReadOnly {
		*flags |= C.HAMR_SHARE_READ_ONLY
	}
	if made.Copied {
		*flags |= C.HAMR_SHARE_COPY
	}
	return nil
}

//export hamrOpenFrame
func hamrOpenFrame(frame unsafe.Pointer, bytes C.size_t, descriptors *C.int, count C.int32_t, result *C.hamr_array) *C.hamr_error {
	list := make([]int, count)
	for i, number := range unsafe.Slice(descriptors, count) {
		list[i] = int(number)
	}
	return failed(bridge.OpenElements(C.GoBytes(frame, C.int(bytes)), list, described(result)))
}
