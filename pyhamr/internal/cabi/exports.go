package cabi

// #include "hamr_abi.h"
import "C"

import (
	"fmt"
	"os"
	"unsafe"

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
	var released func()
	if key != 0 {
		released = func() { callFinished(finished, key) }
	}
	return text(bridge.Adopt(descriptor(array), released))
}

//export hamrRelease
func hamrRelease(memory C.uint64_t) {
	if err := bridge.Release(uint64(memory)); err != nil {
		// A destructor has nobody to raise to.
		fmt.Fprintln(os.Stderr, "hamr: while releasing memory:", err)
	}
}
