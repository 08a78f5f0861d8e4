// Package capi is hamr/interface.h, what C, C++ and Fortran programs rely on: handles and a table that
// only grows, in C over package cabi's table, whose calls may change with each version. What needs
// nothing of Go calls nothing of Go.
//
// In a forked child the functions and the handles of the parent's library go on being used, over the
// table of a second copy of it: C survives a fork, Go does not. See fork.c.
package capi

/*
#cgo CFLAGS: -I${SRCDIR}/../../../include -I${SRCDIR}/../../../python/hamr/native -Wall -Wextra -fexceptions
#include "../cabi/entry.h"
#include "granted.h"
#include "hamr/functions.h"

int64_t capi_drop_spares(int64_t *untold);
void capi_set_spare_ends(uint64_t address);
void capi_set_recorded(uint64_t address);
*/
import "C"

import (
	"unsafe"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

// hamrCore gives out cabi's table, and where the core says that it is being traced, and that memory is checked and
// watched.
//
//export hamrCore
func hamrCore(tracing, checking, watching *C.uint64_t, configured *C.int32_t) *C.hamr_functions {
	_, word, _ := bridge.Runtime.Words()
	*tracing, *checking = C.uint64_t(word), C.uint64_t(bridge.Runtime.CheckedWord())
	*watching = C.uint64_t(bridge.Runtime.WatchedWord())
	if bridge.Settings.Said() {
		*configured = 1
	}
	table := uintptr(cabi.Table())
	return *(**C.hamr_functions)(unsafe.Pointer(&table))
}

//export hamrLimitPool
func hamrLimitPool(allocator, device C.int32_t, bytes C.int64_t) *C.hamr_error {
	return (*C.hamr_error)(cabi.Failure(bridge.LimitPool(backends.Allocator(allocator), int(device), int64(bytes))))
}

//export hamrLimitKept
func hamrLimitKept(bytes C.int64_t) *C.hamr_error {
	return (*C.hamr_error)(cabi.Failure(bridge.LimitKept(int64(bytes))))
}

//export hamrLimitLibrary
func hamrLimitLibrary(library, backend *C.char, device C.int32_t, bytes C.int64_t) *C.hamr_error {
	return (*C.hamr_error)(cabi.Failure(
		bridge.LimitLibrary(C.GoString(library), C.GoString(backend), int(device), int64(bytes))))
}

func init() {
	C.capi_set_spare_ends(C.uint64_t(bridge.SpareEnds())) // a variable, which never moves
	C.capi_set_recorded(C.uint64_t(bridge.RecordedDescriptors()))
	bridge.DropSpares = func() (reused, untold int64) {
		var count C.int64_t
		C.granted_drop()
		made := C.capi_drop_spares(&count)
		return int64(made), int64(count)
	}
}
