package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"hamr/arrayiface"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

// sizes is memory of C's.
func sizes(name string, values *C.constant_int64, n C.int64_t) ([]int, error) {
	if n < 0 || n > math.MaxInt32 || (n > 0 && values == nil) {
		return nil, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: name,
			Value:    fmt.Sprintf("%d entries at %p", n, values),
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

//export hamrCopyMany
func hamrCopyMany(count C.int64_t, destinations, sources *C.constant_array, destinationIndex,
	sourceIndex *C.hamr_array, transfer C.int32_t) *C.hamr_error {
	to, err := descriptors("destinations", destinations, count)
	if err != nil {
		return failure(err)
	}
	from, err := descriptors("sources", sources, count)
	if err != nil {
		return failure(err)
	}
	return failure(bridge.CopyMany(to, from, descriptor(destinationIndex), descriptor(sourceIndex), int32(transfer)))
}

// descriptors is memory of C's.
func descriptors(name string, list *C.constant_array, n C.int64_t) ([]*bridge.Descriptor, error) {
	if n < 0 || n > math.MaxInt32 || (n > 0 && list == nil) {
		return nil, &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: name,
			Value:    fmt.Sprintf("%d arrays at %p", n, list),
			Accepted: "as many as there are"}
	}
	return unsafe.Slice((**bridge.Descriptor)(unsafe.Pointer(list)), n), nil
}
