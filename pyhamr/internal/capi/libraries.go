package capi

// #include <stdint.h>
import "C"

import (
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

// hamrAllocateFor is for a library that hamr serves; zero where there is no memory.
//
//export hamrAllocateFor
func hamrAllocateFor(library, device C.int32_t, size, stream C.uint64_t, waiting C.int32_t) C.uint64_t {
	l, s := gobuffer.Library(library), backends.Stream(stream)
	at := bridge.AllocateForAtOnce(l, int(device), int(size), s)
	if at == 0 && waiting != 0 {
		at, _ = bridge.AllocateFor(l, int(device), int(size), s)
	}
	return C.uint64_t(at)
}

//export hamrFreeFor
func hamrFreeFor(address C.uint64_t) { _ = bridge.FreeFor(backends.Address(address)) }

//export hamrUseFor
func hamrUseFor(address, stream C.uint64_t) {
	_ = bridge.UseFor(backends.Address(address), backends.Stream(stream))
}
