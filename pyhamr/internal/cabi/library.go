package cabi

// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"fmt"
	"unsafe"

	"hamr/arrayiface"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

//export hamrLibraryVersion
func hamrLibraryVersion() *C.constant_char { return version }

//export hamrBackend
func hamrBackend(name *C.constant_char, found **C.hamr_backend) *C.hamr_error {
	r, err := bridge.Report(goString(name))
	if err != nil {
		return failure(err)
	}
	at, b := newBlock(unsafe.Sizeof(C.hamr_backend{}), []list{r.Tried, r.Allocators}, r.Name, r.Reason)
	*found = (*C.hamr_backend)(at)
	**found = C.hamr_backend{
		name:         b.text(r.Name),
		reason:       b.text(r.Reason),
		tried:        b.list(r.Tried),
		allocators:   b.list(r.Allocators),
		available:    truth(r.Available),
		device_count: C.int32_t(r.Devices),
	}
	return nil
}

//export hamrParseDlpack
func hamrParseDlpack(code, bits, lanes C.int32_t, element *C.int32_t) *C.hamr_error {
	if code != C.int32_t(uint8(code)) || bits != C.int32_t(uint8(bits)) || lanes != C.int32_t(uint16(lanes)) {
		return failure(&gobuffer.ArgumentError{Fault: gobuffer.BadType, Argument: "dtype",
			Value: fmt.Sprintf("(code %d, bits %d, lanes %d)", code, bits, lanes), Accepted: "a DLDataType"})
	}
	t, err := arrayiface.FromDLPack(uint8(code), uint8(bits), uint16(lanes))
	*element = C.int32_t(t)
	return failure(err)
}

//export hamrCheckInterface
func hamrCheckInterface(of *C.constant_interface, element *C.int32_t) *C.hamr_error {
	i := (*C.hamr_interface)(unsafe.Pointer(of))
	fields := arrayiface.Fields{
		Typestr:      goString(i.typestr),
		HasData:      true,
		Address:      uintptr(i.pointer),
		Offset:       int(i.offset),
		BufferLength: int(i.length),
		Masked:       i.masked != 0,
		Version:      int(i.version),
	}
	var err error
	if fields.Shape, err = sizes("shape", i.shape, i.shape_length); err != nil {
		return failure(err)
	}
	if i.strides != nil {
		if fields.Strides, err = sizes("strides", i.strides, i.strides_length); err != nil {
			return failure(err)
		}
	}
	t, err := bridge.CheckInterface(fields)
	*element = C.int32_t(t)
	return failure(err)
}

//export hamrStatistics
func hamrStatistics(rows *C.hamr_statistics, room C.int32_t) C.int32_t {
	list := bridge.Statistics()
	for i, s := range list[:min(len(list), max(int(room), 0))] {
		unsafe.Slice(rows, room)[i] = C.hamr_statistics{
			allocator: C.int32_t(s.Allocator),
			live:      C.int64_t(s.Live),
			current:   C.int64_t(s.Current),
			peak:      C.int64_t(s.Peak),
			made:      C.int64_t(s.Made),
			adopted:   C.int64_t(s.Adopted),
			kept:      C.int64_t(s.Kept),
			reused:    C.int64_t(s.Reused),
		}
	}
	return C.int32_t(len(list))
}

//export hamrConfigure
func hamrConfigure(name, value *C.constant_char) *C.hamr_error {
	bridge.Settings.Set(goString(name), goString(value))
	return nil
}
