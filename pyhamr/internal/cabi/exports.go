package cabi

// #include "hamr_abi.h"
import "C"

import (
	"fmt"
	"os"
	"unsafe"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

func descriptor(a *C.hamr_array) *bridge.Descriptor {
	return (*bridge.Descriptor)(unsafe.Pointer(a))
}

//export hamrCreate
func hamrCreate(array *C.hamr_array, value unsafe.Pointer, valueElement C.int32_t) *C.char {
	return text(bridge.Create(descriptor(array), value, int32(valueElement)))
}

//export hamrAdopt
func hamrAdopt(array *C.hamr_array, key C.uint64_t, finished C.hamr_finished_function) *C.char {
	return text(bridge.Adopt(descriptor(array), release(key, finished)))
}

func release(key C.uint64_t, finished C.hamr_finished_function) func() {
	if key == 0 {
		return nil
	}
	return func() { callFinished(finished, key) }
}

//export hamrAdoptDevice
func hamrAdoptDevice(array *C.hamr_array, key C.uint64_t, finished C.hamr_finished_function, producer C.uint64_t) *C.char {
	return text(bridge.AdoptDevice(descriptor(array), release(key, finished), backends.Stream(producer)))
}

//export hamrAccess
func hamrAccess(array *C.hamr_array, space, device C.int32_t, result *C.hamr_array) *C.char {
	return text(bridge.Access(descriptor(array), backends.Space(space), int(device), descriptor(result)))
}

//export hamrRead
func hamrRead(array *C.hamr_array, target unsafe.Pointer, size C.int64_t, done *C.int32_t) *C.char {
	read, err := bridge.Read(descriptor(array), uint64(uintptr(target)), int(size))
	if read {
		*done = 1
	}
	return text(err)
}

//export hamrCovering
func hamrCovering(array *C.hamr_array, stream *C.uint64_t) *C.char {
	covering, err := bridge.Covering(descriptor(array))
	*stream = C.uint64_t(covering)
	return text(err)
}

//export hamrOrderBefore
func hamrOrderBefore(array *C.hamr_array, stream C.uint64_t) *C.char {
	return text(bridge.OrderBefore(descriptor(array), backends.Stream(stream)))
}

//export hamrRelease
func hamrRelease(memory C.uint64_t) { complain(bridge.Release(uint64(memory))) }

//export hamrLeave
func hamrLeave(memory, stream C.uint64_t) *C.char {
	return text(bridge.Leave(uint64(memory), backends.Stream(stream)))
}

//export hamrReleaseAfter
func hamrReleaseAfter(memory, stream C.uint64_t) {
	complain(bridge.Leave(uint64(memory), backends.Stream(stream)))
}

// complain is for destructors, which have nobody to raise to.
func complain(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "hamr: while releasing memory:", err)
	}
}
