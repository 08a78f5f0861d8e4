// Package cabi is the C interface of the core, hamr/functions.h: a table of function
// pointers, each a spelling of a function of internal/bridge.
package cabi

/*
#cgo CFLAGS: -I${SRCDIR}/../../../include
#include <stdlib.h>
#include "hamr/functions.h"

const hamr_functions *hamr_function_table(void);
void hamr_set_devices(hamr_devices devices);
void hamr_call_finished(hamr_finished_function finished, uint64_t key);
int hamr_call_raise(hamr_error *error);
*/
import "C"

//go:generate go run hamr/internal/spellings ../../..

import (
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// What is the same in both languages is the same bytes, and the same numbers.
var (
	_ [unsafe.Sizeof(C.hamr_array{})]byte = [unsafe.Sizeof(bridge.Descriptor{})]byte{}
	_ [C.HAMR_ELEMENT_TYPE_COUNT]byte     = [arrayiface.NumTypes]byte{}
	_ [C.HAMR_ERROR_KIND_COUNT - 1]byte   = [bridge.Paused]byte{}
	_ [C.HAMR_BUSY]byte                   = [bridge.Busy]byte{}
	_ [-C.HAMR_ALLOCATOR_SAME]byte        = [-backends.Same]byte{}
	_ [C.HAMR_MAX_DIMENSIONS]byte         = [arrayiface.MaxDimensions]byte{}
)

// Table returns the address of the hamr_functions of this copy of the library.
func Table() uint64 { return uint64(uintptr(unsafe.Pointer(C.hamr_function_table()))) }

//export hamrGetFunctions
func hamrGetFunctions(version C.uint32_t) *C.hamr_functions {
	if version != C.HAMR_ABI_VERSION {
		return nil
	}
	return C.hamr_function_table()
}

// Raise hands an error to what set_raise was given, and reports whether there is that.
func Raise(err error) bool { return C.hamr_call_raise(failure(err)) != 0 }

var version *C.char

// SetVersion says which version of hamr this is.
func SetVersion(text string) { version = C.CString(text) }

func init() {
	bridge.OnDevices = func(count int, of backends.Shortcuts, words [4]uintptr) {
		C.hamr_set_devices(C.hamr_devices{
			cuda_count:      C.int32_t(count),
			cuda_current:    (*[0]byte)(pointer(of.CurrentDevice)),
			cuda_attributes: (*[0]byte)(pointer(of.PointerAttributes)),
			cuda_context:    (*[0]byte)(pointer(of.CurrentContext)),
			cuda_set:        (*[0]byte)(pointer(of.SetContext)),
			cuda_query:      (*[0]byte)(pointer(of.StreamQuery)),
			cuda_capturing:  (*[0]byte)(pointer(of.StreamIsCapturing)),
			cuda_event:      (*[0]byte)(pointer(of.EventCreate)),
			cuda_record:     (*[0]byte)(pointer(of.EventRecord)),
			cuda_done:       (*[0]byte)(pointer(of.EventQuery)),
			cuda_wait:       (*[0]byte)(pointer(of.StreamWaitEvent)),
			cuda_download:   (*[0]byte)(pointer(of.MemcpyToHost)),
			kept:            C.uint64_t(words[0]),
			tracing:         C.uint64_t(words[1]),
			cuda_launch:     (*[0]byte)(pointer(of.LaunchKernel)),
			accesses:        C.uint64_t(words[2]),
			pausable:        C.uint64_t(words[3]),
			cuda_contexts:   (*unsafe.Pointer)(pointer(of.PrimaryContexts)),
		})
	}
	bridge.OnDevices(0, backends.Shortcuts{}, bridge.Words())
}

// pointer turns an address of C's, or of memory that lasts as long as the library, into what cgo calls a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
