// Package cabi is the C side of the façade: the few functions that the Python
// extension calls without gopy, as a table of function pointers.
package cabi

/*
#cgo CFLAGS: -I${SRCDIR}/../../../include
#include <stdlib.h>
#include "hamr_abi.h"

const hamr_functions *hamr_function_table(void);
void hamr_set_devices(hamr_devices devices);
void hamr_call_finished(hamr_finished_function finished, uint64_t key);
*/
import "C"

import (
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// The two descriptions of an array are the same bytes.
var _ [unsafe.Sizeof(C.hamr_array{})]byte = [unsafe.Sizeof(bridge.Descriptor{})]byte{}

// The header has arrayiface's types: go generate ./arrayiface writes it.
var _ [C.HAMR_ELEMENT_TYPE_COUNT]byte = [arrayiface.NumTypes]byte{}

// Table returns the address of the hamr_functions of this copy of the library.
func Table() uint64 { return uint64(uintptr(unsafe.Pointer(C.hamr_function_table()))) }

func init() {
	bridge.OnDevices = func(count int, of backends.Shortcuts) {
		C.hamr_set_devices(C.hamr_devices{
			cuda_count:      C.int32_t(count),
			cuda_current:    (*[0]byte)(pointer(of.CurrentDevice)),
			cuda_attributes: (*[0]byte)(pointer(of.PointerAttributes)),
			cuda_context:    (*[0]byte)(pointer(of.CurrentContext)),
			cuda_query:      (*[0]byte)(pointer(of.StreamQuery)),
			cuda_capturing:  (*[0]byte)(pointer(of.StreamIsCapturing)),
			cuda_event:      (*[0]byte)(pointer(of.EventCreate)),
			cuda_record:     (*[0]byte)(pointer(of.EventRecord)),
			cuda_wait:       (*[0]byte)(pointer(of.StreamWaitEvent)),
			cuda_contexts:   (*unsafe.Pointer)(pointer(of.PrimaryContexts)),
		})
	}
}

// pointer turns an address of C's, or of memory that lasts as long as the library, into
// what cgo calls a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func callFinished(finished C.hamr_finished_function, key C.uint64_t) {
	C.hamr_call_finished(finished, key)
}

func text(err error) *C.char {
	if err == nil {
		return nil
	}
	return C.CString(bridge.Text(err))
}
