package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import "hamr/pyhamr/internal/bridge"

//export hamrDeviceCount
func hamrDeviceCount(backend *C.constant_char, count *C.int32_t) *C.hamr_error {
	n, err := bridge.DeviceCount(goString(backend))
	*count = C.int32_t(n)
	return failure(err)
}

//export hamrCurrentDevice
func hamrCurrentDevice(backend *C.constant_char, device *C.int32_t) *C.hamr_error {
	current, err := bridge.CurrentDevice(goString(backend))
	*device = C.int32_t(current)
	return failure(err)
}

//export hamrActivate
func hamrActivate(backend *C.constant_char, device C.int32_t, before *C.uint64_t) *C.hamr_error {
	old, err := bridge.Activate(goString(backend), int(device))
	*before = C.uint64_t(old)
	return failure(err)
}

//export hamrRestore
func hamrRestore(backend *C.constant_char, before C.uint64_t) *C.hamr_error {
	return failure(bridge.Restore(goString(backend), uint64(before)))
}

//export hamrActivateIfCurrent
func hamrActivateIfCurrent(backend *C.constant_char, device C.int32_t, before *C.uint64_t, has *C.int32_t) *C.hamr_error {
	old, can, err := bridge.ActivateIfCurrent(goString(backend), int(device))
	*before, *has = C.uint64_t(old), truth(can)
	return failure(err)
}

//export hamrCanAccess
func hamrCanAccess(backend *C.constant_char, from, to C.int32_t, can *C.int32_t) *C.hamr_error {
	is, err := bridge.CanAccess(goString(backend), int(from), int(to))
	*can = truth(is)
	return failure(err)
}

//export hamrEnablePeer
func hamrEnablePeer(backend *C.constant_char, from, to C.int32_t) *C.hamr_error {
	return failure(bridge.EnablePeer(goString(backend), int(from), int(to)))
}

//export hamrDisablePeer
func hamrDisablePeer(backend *C.constant_char, from, to C.int32_t) *C.hamr_error {
	return failure(bridge.DisablePeer(goString(backend), int(from), int(to)))
}

//export hamrMemoryInfo
func hamrMemoryInfo(backend *C.constant_char, device C.int32_t, free, total *C.int64_t) *C.hamr_error {
	left, all, err := bridge.MemoryInfo(goString(backend), int(device))
	*free, *total = C.int64_t(left), C.int64_t(all)
	return failure(err)
}

//export hamrDescribe
func hamrDescribe(backend *C.constant_char, device C.int32_t, facts **C.hamr_strings) *C.hamr_error {
	known, err := bridge.Describe(goString(backend), int(device))
	var texts list
	for _, pair := range known {
		texts = append(texts, pair[:]...)
	}
	*facts = strings(texts)
	return failure(err)
}
