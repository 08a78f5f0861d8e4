package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

// sizes is memory of C's.
func sizes(name string, values *C.constant_int64, n C.int64_t) ([]int, error) {
	if n < 0 || n > math.MaxInt32 || (n > 0 && values == nil) {
		return nil, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: name, Value: fmt.Sprintf("%d entries at %p", n, values),
			Accepted: "as many as there are"}
	}
	return unsafe.Slice((*int)(unsafe.Pointer(values)), n), nil
}

func shapeOf(ndim C.int32_t, shape *C.constant_int64) ([]int, error) {
	if ndim < 0 || ndim > arrayiface.MaxDimensions {
		return nil, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "ndim", Value: fmt.Sprint(ndim),
			Accepted: fmt.Sprintf("0 … %d", arrayiface.MaxDimensions)}
	}
	return sizes("shape", shape, C.int64_t(ndim))
}

//export hamrReserve
func hamrReserve(array *C.hamr_array, n C.int64_t, value, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Reserve(descriptor(array), int(n), descriptor(value), descriptor(result)))
}

//export hamrResize
func hamrResize(array *C.hamr_array, ndim C.int32_t, shape *C.constant_int64, value, result *C.hamr_array) *C.hamr_error {
	dimensions, err := shapeOf(ndim, shape)
	if err != nil {
		return failure(err)
	}
	return failure(bridge.Resize(descriptor(array), dimensions, descriptor(value), descriptor(result)))
}

//export hamrAppend
func hamrAppend(array, other, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Append(descriptor(array), descriptor(other), descriptor(result)))
}

//export hamrAssign
func hamrAssign(array, other, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Assign(descriptor(array), descriptor(other), descriptor(result)))
}

//export hamrSet
func hamrSet(array *C.hamr_array, at C.int64_t, other *C.hamr_array, start, n C.int64_t, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Set(descriptor(array), int(at), descriptor(other), int(start), int(n), descriptor(result)))
}

//export hamrWrite
func hamrWrite(array, other, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Write(descriptor(array), descriptor(other), descriptor(result)))
}

//export hamrCopyMany
func hamrCopyMany(count C.int64_t, destinations, sources *C.constant_array, transfer C.int32_t) *C.hamr_error {
	to, err := descriptors("destinations", destinations, count)
	if err != nil {
		return failure(err)
	}
	from, err := descriptors("sources", sources, count)
	if err != nil {
		return failure(err)
	}
	return failure(bridge.CopyMany(to, from, int32(transfer)))
}

// descriptors is memory of C's.
func descriptors(name string, list *C.constant_array, n C.int64_t) ([]*bridge.Descriptor, error) {
	if n < 0 || n > math.MaxInt32 || (n > 0 && list == nil) {
		return nil, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: name, Value: fmt.Sprintf("%d arrays at %p", n, list),
			Accepted: "as many as there are"}
	}
	return unsafe.Slice((**bridge.Descriptor)(unsafe.Pointer(list)), n), nil
}

//export hamrFill
func hamrFill(array, value, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Fill(descriptor(array), descriptor(value), descriptor(result)))
}

//export hamrMove
func hamrMove(array *C.hamr_array, allocator, device C.int32_t, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Move(descriptor(array), backends.Allocator(allocator), int(device), descriptor(result)))
}

//export hamrCopy
func hamrCopy(array *C.hamr_array, allocator, device, element C.int32_t, result *C.hamr_array) *C.hamr_error {
	return failure(bridge.Copy(descriptor(array), backends.Allocator(allocator), int(device), arrayiface.ElementType(element), descriptor(result)))
}

//export hamrReshape
func hamrReshape(array *C.hamr_array, ndim C.int32_t, shape *C.constant_int64, copying C.int32_t, result *C.hamr_array, view *C.int32_t) *C.hamr_error {
	dimensions, err := shapeOf(ndim, shape)
	if err != nil {
		return failure(err)
	}
	shared, err := bridge.Reshape(descriptor(array), dimensions, gobuffer.Copying(copying), descriptor(result))
	*view = truth(shared)
	return failure(err)
}

//export hamrText
func hamrText(array *C.hamr_array, limit C.int64_t, text **C.char) *C.hamr_error {
	return failure(bridge.Text(descriptor(array), int(limit), func(elements string) { *text = C.CString(elements) }))
}
