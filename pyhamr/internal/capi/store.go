package capi

// #include "store_calls.h"
import "C"

import (
	"unsafe"

	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

// What C says is the same bytes.
var _ [unsafe.Sizeof(C.hamr_store_id{})]byte = [unsafe.Sizeof(bridge.StoreID{})]byte{}

func failed(err error) *C.hamr_error { return (*C.hamr_error)(cabi.Failure(err)) }

func described(array *C.hamr_array) *bridge.Descriptor {
	return (*bridge.Descriptor)(unsafe.Pointer(array))
}

func object(id *C.hamr_store_id) bridge.StoreID { return *(*bridge.StoreID)(unsafe.Pointer(id)) }

func setObject(to *C.hamr_store_id, id bridge.StoreID) { *(*bridge.StoreID)(unsafe.Pointer(to)) = id }

func truth(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}

//export hamrStoreServe
func hamrStoreServe(path, spill *C.char, host, device C.int64_t, token *C.uint64_t, found **C.char) *C.hamr_error {
	number, listens, err := bridge.Serve(C.GoString(path), C.GoString(spill), int64(host), int64(device))
	if err == nil {
		*token, *found = C.uint64_t(number), C.CString(listens)
	}
	return failed(err)
}

//export hamrStoreEndServer
func hamrStoreEndServer(token C.uint64_t) *C.hamr_error {
	return failed(bridge.EndServer(uint64(token)))
}

//export hamrStoreConnect
func hamrStoreConnect(path *C.char, milliseconds C.int64_t, token *C.uint64_t, found **C.char) *C.hamr_error {
	number, at, err := bridge.Connect(C.GoString(path), int64(milliseconds))
	if err == nil {
		*token, *found = C.uint64_t(number), C.CString(at)
	}
	return failed(err)
}

//export hamrStoreDisconnect
func hamrStoreDisconnect(token C.uint64_t) *C.hamr_error {
	return failed(bridge.Disconnect(uint64(token)))
}

func creation(array *C.hamr_array, flags C.uint32_t, metadata unsafe.Pointer, bytes C.size_t) bridge.Creation {
	return bridge.Creation{Of: described(array), Flags: int(flags), Metadata: copied(metadata, bytes)}
}

func copied(from unsafe.Pointer, bytes C.size_t) []byte {
	if bytes == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(from), bytes)...)
}

//export hamrStoreCreate
func hamrStoreCreate(session C.uint64_t, array *C.hamr_array, flags C.uint32_t, metadata unsafe.Pointer, bytes C.size_t, id *C.hamr_store_id, token *C.uint64_t) *C.hamr_error {
	number, made, err := bridge.CreateObject(uint64(session), creation(array, flags, metadata, bytes), described(array))
	*token = C.uint64_t(number)
	setObject(id, made)
	return failed(err)
}

//export hamrStoreSeal
func hamrStoreSeal(token C.uint64_t, result *C.hamr_array) *C.hamr_error {
	return failed(bridge.SealObject(uint64(token), described(result)))
}

//export hamrStoreAbort
func hamrStoreAbort(token C.uint64_t) *C.hamr_error {
	return failed(bridge.AbortObject(uint64(token)))
}

//export hamrStoreEndObject
func hamrStoreEndObject(token C.uint64_t) { bridge.EndObject(uint64(token)) }

//export hamrStoreGet
func hamrStoreGet(session C.uint64_t, id *C.hamr_store_id, unsealed C.int32_t, milliseconds C.int64_t, result *C.hamr_array, token *C.uint64_t) *C.hamr_error {
	number, err := bridge.GetObject(uint64(session), object(id), unsealed != 0, int64(milliseconds), described(result))
	*token = C.uint64_t(number)
	return failed(err)
}

//export hamrStorePut
func hamrStorePut(session C.uint64_t, array *C.hamr_array, flags C.uint32_t, metadata unsafe.Pointer, bytes C.size_t, id *C.hamr_store_id) *C.hamr_error {
	made, err := bridge.PutObject(uint64(session), creation(array, flags, metadata, bytes))
	setObject(id, made)
	return failed(err)
}

//export hamrStoreDelete
func hamrStoreDelete(session C.uint64_t, id *C.hamr_store_id, force C.int32_t) *C.hamr_error {
	return failed(bridge.DeleteObject(uint64(session), object(id), force != 0))
}

//export hamrStorePutName
func hamrStorePutName(session C.uint64_t, name *C.char, id *C.hamr_store_id, replace C.int32_t) *C.hamr_error {
	return failed(bridge.PutName(uint64(session), C.GoString(name), object(id), replace != 0))
}

//export hamrStoreGetName
func hamrStoreGetName(session C.uint64_t, name *C.char, milliseconds C.int64_t, id *C.hamr_store_id) *C.hamr_error {
	found, err := bridge.GetName(uint64(session), C.GoString(name), int64(milliseconds))
	setObject(id, found)
	return failed(err)
}

//export hamrStoreDropName
func hamrStoreDropName(session C.uint64_t, name *C.char) *C.hamr_error {
	return failed(bridge.DropName(uint64(session), C.GoString(name)))
}

//export hamrStoreExists
func hamrStoreExists(session C.uint64_t, id *C.hamr_store_id, there, sealed *C.int32_t) *C.hamr_error {
	is, done, err := bridge.ObjectExists(uint64(session), object(id))
	*there, *sealed = truth(is), truth(done)
	return failed(err)
}

//export hamrStoreDescribe
func hamrStoreDescribe(session C.uint64_t, id *C.hamr_store_id, info *C.hamr_store_info) *C.hamr_error {
	found, err := bridge.DescribeObject(uint64(session), object(id))
	if err != nil {
		return failed(err)
	}
	*info = C.hamr_store_info{
		bytes: C.int64_t(found.Bytes), leases: C.int64_t(found.Leases), element: C.int32_t(found.Layout.Type),
		ndim: C.int32_t(found.Layout.NDim()), flags: C.uint32_t(bridge.ObjectFlags(found)),
	}
	setObject(&info.id, found.ID)
	*(*[16]byte)(unsafe.Pointer(&info.device)) = found.Device
	for i, n := range found.Layout.Shape {
		info.shape[i] = C.int64_t(n)
	}
	return nil
}

//export hamrStoreMetadata
func hamrStoreMetadata(session C.uint64_t, id *C.hamr_store_id, text **C.char, bytes *C.size_t) *C.hamr_error {
	found, err := bridge.DescribeObject(uint64(session), object(id))
	if err == nil {
		*text, *bytes = C.CString(string(found.Metadata)), C.size_t(len(found.Metadata))
	}
	return failed(err)
}

//export hamrStorePin
func hamrStorePin(session C.uint64_t, id *C.hamr_store_id, on C.int32_t) *C.hamr_error {
	return failed(bridge.PinObject(uint64(session), object(id), on != 0))
}

//export hamrStoreSetEvictable
func hamrStoreSetEvictable(session C.uint64_t, id *C.hamr_store_id, on C.int32_t) *C.hamr_error {
	return failed(bridge.SetEvictable(uint64(session), object(id), on != 0))
}

//export hamrStoreSetTimeout
func hamrStoreSetTimeout(session C.uint64_t, milliseconds C.int64_t) *C.hamr_error {
	return failed(bridge.LimitAnswers(uint64(session), int64(milliseconds)))
}

//export hamrStoreSetMetadata
func hamrStoreSetMetadata(session C.uint64_t, id *C.hamr_store_id, metadata unsafe.Pointer, bytes C.size_t) *C.hamr_error {
	return failed(bridge.SetMetadata(uint64(session), object(id), copied(metadata, bytes)))
}

//export hamrStoreList
func hamrStoreList(session C.uint64_t, which C.uint32_t, prefix *C.char, after *C.uint64_t, ids *C.hamr_store_id, room C.int64_t, found *C.int64_t) *C.hamr_error {
	named, unsealed := which&C.HAMR_STORE_LIST_NAMED != 0, which&C.HAMR_STORE_LIST_UNSEALED != 0
	list, next, err := bridge.ListObjects(uint64(session), C.GoString(prefix), named, unsealed, uint64(*after), int(room))
	if err == nil {
		*found, *after = setObjects(ids, list), C.uint64_t(next)
	}
	return failed(err)
}

func setObjects(to *C.hamr_store_id, list []bridge.StoreID) C.int64_t {
	return C.int64_t(copy(unsafe.Slice((*bridge.StoreID)(unsafe.Pointer(to)), len(list)), list))
}

//export hamrStoreWait
func hamrStoreWait(session C.uint64_t, ids *C.hamr_store_id, n, count, milliseconds C.int64_t, ready *C.hamr_store_id, found *C.int64_t) *C.hamr_error {
	list := append([]bridge.StoreID(nil), unsafe.Slice((*bridge.StoreID)(unsafe.Pointer(ids)), n)...)
	sealed, err := bridge.WaitForObjects(uint64(session), list, int(count), int64(milliseconds))
	if err == nil {
		*found = setObjects(ready, sealed)
	}
	return failed(err)
}

//export hamrStoreFigures
func hamrStoreFigures(session C.uint64_t, figures *C.hamr_store_figures) *C.hamr_error {
	t, err := bridge.StoreStatistics(uint64(session))
	if err != nil {
		return failed(err)
	}
	*figures = C.hamr_store_figures{
		objects: C.int64_t(t.Objects), unsealed: C.int64_t(t.Unsealed), names: C.int64_t(t.Names), leases: C.int64_t(t.Leases),
		sessions: C.int64_t(t.Sessions), evicted: C.int64_t(t.Evicted), spilled: C.int64_t(t.Spilled), requests: C.int64_t(t.Requests),
	}
	for _, m := range t.Memories {
		if m.Name == "host" {
			figures.limit, figures.used = C.int64_t(m.Limit), C.int64_t(m.Used)
			figures.peak, figures.lingering = C.int64_t(m.Peak), C.int64_t(m.Lingering)
		}
	}
	return nil
}
