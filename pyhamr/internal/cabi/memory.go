package cabi

// #include "constant.h"
// #include "hamr/functions.h"
// void hamr_call_finished(hamr_finished_function finished, uint64_t key);
import "C"

import (
	"fmt"
	"os"
	"unsafe"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

func descriptor(a *C.hamr_array) *bridge.Descriptor {
	return (*bridge.Descriptor)(unsafe.Pointer(a))
}

func truth(is bool) C.int32_t {
	if is {
		return 1
	}
	return 0
}

//export hamrCreate
func hamrCreate(array *C.hamr_array, value unsafe.Pointer, valueElement C.int32_t) *C.hamr_error {
	return failure(bridge.Create(descriptor(array), value, int32(valueElement)))
}

//export hamrCreateAtOnce
func hamrCreateAtOnce(array *C.hamr_array) C.int32_t {
	return truth(bridge.CreateAtOnce(descriptor(array)))
}

//export hamrAdopt
func hamrAdopt(array *C.hamr_array, key C.uint64_t, finished C.hamr_finished_function) *C.hamr_error {
	return failure(bridge.Adopt(descriptor(array), release(key, finished)))
}

func release(key C.uint64_t, finished C.hamr_finished_function) func() {
	if key == 0 {
		return nil
	}
	return func() { C.hamr_call_finished(finished, key) }
}

//export hamrAdoptDevice
func hamrAdoptDevice(array *C.hamr_array, key C.uint64_t, finished C.hamr_finished_function, producer C.uint64_t) *C.hamr_error {
	return failure(bridge.AdoptDevice(descriptor(array), release(key, finished), backends.Stream(producer)))
}

//export hamrRelease
func hamrRelease(memory C.uint64_t) { complain(bridge.Release(uint64(memory))) }

//export hamrReleaseAtOnce
func hamrReleaseAtOnce(memory C.uint64_t) C.int32_t {
	return truth(bridge.ReleaseAtOnce(uint64(memory)))
}

//export hamrLeave
func hamrLeave(memory, stream C.uint64_t) *C.hamr_error {
	return failure(bridge.Leave(uint64(memory), backends.Stream(stream)))
}

//export hamrReleaseAfter
func hamrReleaseAfter(memory, stream C.uint64_t) {
	complain(bridge.LeaveLate(uint64(memory), backends.Stream(stream)))
}

// complain is for destructors, which have nobody to raise to.
func complain(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "hamr: while releasing memory:", err)
	}
}

//export hamrLiveReferences
func hamrLiveReferences() C.int64_t { return C.int64_t(bridge.Live()) }

//export hamrLocate
func hamrLocate(address C.uint64_t, found *C.hamr_location) *C.hamr_error {
	l, err := bridge.Locate(uint64(address))
	*found = C.hamr_location{base: C.uint64_t(l.Base), size: C.int64_t(l.Size), allocator: C.int32_t(l.Allocator), device: C.int32_t(l.Device)}
	return failure(err)
}

//export hamrFreeFunction
func hamrFreeFunction(allocator C.int32_t) unsafe.Pointer {
	return pointer(all.FreeFunction(backends.Allocator(allocator)))
}

//export hamrAccess
func hamrAccess(array *C.hamr_array, space, device C.int32_t, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Access(descriptor(array), backends.Space(space), int(device), descriptor(result)))
}

//export hamrChanged
func hamrChanged(array *C.hamr_array) *C.hamr_error {
	return failure(bridge.Changed(descriptor(array)))
}

//export hamrOpenAccess
func hamrOpenAccess(array *C.hamr_array, space, device, mode C.int32_t, result *C.hamr_array, access *C.uint64_t) *C.hamr_error {
	return failure(bridge.OpenAccess(descriptor(array), backends.Space(space), int(device), gobuffer.Mode(mode), descriptor(result), (*uint64)(unsafe.Pointer(access))))
}

//export hamrEndAccess
func hamrEndAccess(access C.uint64_t, commit, streamOver C.int32_t, array, used *C.hamr_array) *C.hamr_error {
	return failure(bridge.EndAccess(uint64(access), commit != 0, streamOver != 0, descriptor(array), descriptor(used)))
}

//export hamrRead
func hamrRead(array *C.hamr_array, target unsafe.Pointer, size C.int64_t, done *C.int32_t) *C.hamr_error {
	read, err := bridge.Read(descriptor(array), uint64(uintptr(target)), int(size))
	*done = truth(read)
	return failure(err)
}

//export hamrWriteBytes
func hamrWriteBytes(array *C.hamr_array, source *C.constant_void, size C.int64_t, done *C.int32_t) *C.hamr_error {
	written, err := bridge.WriteBytes(descriptor(array), uint64(uintptr(unsafe.Pointer(source))), int(size))
	*done = truth(written)
	return failure(err)
}

//export hamrDownloadFailed
func hamrDownloadFailed(code C.int) *C.hamr_error { return failure(bridge.DownloadFailed(int32(code))) }

//export hamrCovering
func hamrCovering(array *C.hamr_array, stream *C.uint64_t) *C.hamr_error {
	covering, err := bridge.Covering(descriptor(array))
	*stream = C.uint64_t(covering)
	return failure(err)
}

//export hamrOrderBefore
func hamrOrderBefore(array *C.hamr_array, stream C.uint64_t) *C.hamr_error {
	return failure(bridge.OrderBefore(descriptor(array), backends.Stream(stream)))
}

//export hamrWaitArray
func hamrWaitArray(array *C.hamr_array, milliseconds C.int64_t, over *C.int32_t) *C.hamr_error {
	is, err := bridge.WaitArray(descriptor(array), patience(milliseconds))
	*over = truth(is)
	return failure(err)
}

//export hamrSynchronize
func hamrSynchronize(array *C.hamr_array) *C.hamr_error {
	return failure(bridge.Synchronize(descriptor(array)))
}
