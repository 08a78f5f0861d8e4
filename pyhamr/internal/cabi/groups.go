package cabi

// #include <stdlib.h>
// #include "constant.h"
import "C"

import (
	"unsafe"

	"hamr/pyhamr/internal/bridge"
	"hamr/store"
)

//export hamrGetGroup
func hamrGetGroup(how C.uint32_t, session C.uint64_t, id *C.constant_id, only *C.constant_text, n,
	milliseconds C.int64_t, result *C.hamr_array, token *C.uint64_t, parts **C.hamr_store_parts) *C.hamr_error {
	return failure(bridge.GetGroup(asking(how, session), object(id), namesOf(only, n), int64(milliseconds),
		descriptor(result), number(token), func(found *store.Group) { *parts = partsOf(found) }))
}

//export hamrPutGroup
func hamrPutGroup(how C.uint32_t, session C.uint64_t, n C.int64_t, arrays *C.constant_array, paths,
	arrayMetadata *C.constant_text, flags C.uint32_t, metadata *C.constant_void, bytes C.size_t,
	name C.hamr_store_text, id *C.hamr_store_id) *C.hamr_error {
	from, err := descriptors("arrays", arrays, n)
	if err != nil {
		return failure(err)
	}
	return failure(bridge.PutGroup(asking(how, session), from, namesOf(paths, n), namesOf(arrayMetadata, n),
		uint32(flags), copied(metadata, bytes), text(name), setObject(id)))
}

// partsOf is the arrays of a group in one block: the parts, what their shapes are, and the texts.
func partsOf(g *store.Group) *C.hamr_store_parts {
	texts := []string{string(g.Metadata()), string(g.Values())}
	sizes := 0
	for path, a := range g.All() {
		texts = append(texts, path, string(g.ArrayMetadata(path)))
		sizes += a.Layout().NDim()
	}
	size, each := unsafe.Sizeof(C.hamr_store_parts{}), unsafe.Sizeof(C.hamr_store_part{})*uintptr(g.Len())
	at, b := newBlock(size+each+unsafe.Sizeof(C.int64_t(0))*uintptr(sizes), nil, texts...)
	list := unsafe.Slice((*C.hamr_store_part)(unsafe.Add(at, size)), g.Len())
	shapes := unsafe.Slice((*C.int64_t)(unsafe.Add(at, size+each)), sizes)
	made := (*C.hamr_store_parts)(at)
	*made = C.hamr_store_parts{count: C.int64_t(g.Len()), parts: unsafe.SliceData(list), metadata: b.text(texts[0]),
		values: b.text(texts[1])}
	start, i := g.Object().Array().Address(), 0
	for path, a := range g.All() {
		layout := a.Layout()
		list[i] = C.hamr_store_part{path: b.textOf(path), metadata: b.textOf(string(g.ArrayMetadata(path))),
			offset: C.int64_t(a.Address() - start), element: C.int32_t(layout.Type), ndim: C.int32_t(layout.NDim()),
			shape: unsafe.SliceData(shapes)}
		for k, n := range layout.Shape {
			shapes[k] = C.int64_t(n)
		}
		shapes, i = shapes[layout.NDim():], i+1
	}
	return made
}
