package cabi

// #include <stdlib.h>
// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"unsafe"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

var _ [unsafe.Sizeof(C.hamr_argument{})]byte = [unsafe.Sizeof(bridge.Argument{})]byte{}

//export hamrGetKernel
func hamrGetKernel(module C.uint64_t, name *C.constant_char, device C.int32_t, kernel **C.hamr_kernel) *C.hamr_error {
	k, err := bridge.GetKernel(uint64(module), goString(name), int(device))
	if err != nil {
		return failure(err)
	}
	size, element := unsafe.Sizeof(C.hamr_kernel{}), unsafe.Sizeof(C.int32_t(0))
	at := C.calloc(1, C.size_t(size+element*uintptr(len(k.Parameters)+1)))
	made := (*C.hamr_kernel)(at)
	*made = C.hamr_kernel{
		kernel:        C.uint64_t(k.Number),
		function:      C.uint64_t(k.Handle),
		sizes:         (*C.int32_t)(unsafe.Add(at, size)),
		parameters:    -1,
		threads:       C.int32_t(k.Threads),
		shared:        C.int32_t(k.Shared),
		most_shared:   C.int32_t(k.MostShared),
		static_shared: C.int32_t(k.Static),
		constant:      C.int32_t(k.Constant),
		local:         C.int32_t(k.Local),
		registers:     C.int32_t(k.Registers),
	}
	for axis := range 3 {
		made.most_block[axis], made.most_grid[axis] = C.uint32_t(k.MostBlock[axis]), C.uint32_t(k.MostGrid[axis])
	}
	if k.KnowsParameters {
		made.parameters = C.int32_t(len(k.Parameters))
		for i, bytes := range k.Parameters {
			unsafe.Slice(made.sizes, len(k.Parameters))[i] = C.int32_t(bytes)
		}
	}
	*kernel = made
	return nil
}

//export hamrLaunch
func hamrLaunch(kernel C.uint64_t, shape *C.hamr_shape, stream C.uint64_t, mayEnd, count C.int32_t,
	arguments *C.hamr_argument) *C.hamr_error {
	s := backends.LaunchShape{Shared: uint32(shape.shared)}
	for axis := range 3 {
		s.Grid[axis], s.Block[axis] = uint32(shape.grid[axis]), uint32(shape.block[axis])
	}
	return failure(bridge.Launch(uint64(kernel), s, backends.Stream(stream), mayEnd != 0,
		unsafe.Slice((*bridge.Argument)(unsafe.Pointer(arguments)), count)))
}

//export hamrCompile
func hamrCompile(backend *C.constant_char, source *C.hamr_source, code **C.hamr_code) *C.hamr_error {
	compiled, err := bridge.Compile(goString(backend), backends.CodeSource{
		Text: C.GoString(source.text), Name: C.GoString(source.name), Architecture: C.GoString(source.architecture),
		Options: goStrings(source.options), Libraries: goStrings(source.libraries), Device: int(source.device),
	})
	if err != nil {
		return failure(err)
	}
	size := unsafe.Sizeof(C.hamr_code{})
	image, text, log := compiled.Image, compiled.Text, compiled.Log
	behindImage := size + uintptr(len(image)) + 1 // zeros end all three
	behindText := behindImage + uintptr(len(text)) + 1
	at := C.calloc(1, C.size_t(behindText+uintptr(len(log))+1))
	made := (*C.hamr_code)(at)
	*made = C.hamr_code{image: unsafe.Add(at, size), size: C.int64_t(len(image)),
		log:  (*C.char)(unsafe.Add(at, behindText)),
		text: (*C.char)(unsafe.Add(at, behindImage))}
	copy(unsafe.Slice((*byte)(made.image), len(image)), image)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(made.text)), len(text)), text)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(made.log)), len(log)), log)
	*code = made
	return nil
}

// goStrings are texts that NULL ends.
func goStrings(texts **C.char) (list []string) {
	for at := texts; at != nil && *at != nil; at = (**C.char)(unsafe.Add(unsafe.Pointer(at), unsafe.Sizeof(*at))) {
		list = append(list, C.GoString(*at))
	}
	return list
}
