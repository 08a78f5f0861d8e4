package cabi

// #include "constant.h"
import "C"

import (
	"cmp"
	"slices"
	"unsafe"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
	"hamr/store"
)

// What C says is the same bytes.
var (
	_ [unsafe.Sizeof(C.hamr_store_id{})]byte             = [unsafe.Sizeof(bridge.StoreID{})]byte{}
	_ [C.HAMR_STORE_KINDS_END]byte                       = [bridge.StoreKindsEnd]byte{}
	_ [C.HAMR_PROMPT | C.HAMR_LENT | C.HAMR_PRIVATE]byte = [bridge.HowFlags]byte{}
)

func asking(how C.uint32_t, session C.uint64_t) bridge.Asking {
	return bridge.Asking{Session: uint64(session), How: uint32(how)}
}

func object(id *C.constant_id) bridge.StoreID { return *(*bridge.StoreID)(unsafe.Pointer(id)) }

func setObject(id *C.hamr_store_id) *bridge.StoreID { return (*bridge.StoreID)(unsafe.Pointer(id)) }

func number(to *C.uint64_t) *uint64 { return (*uint64)(unsafe.Pointer(to)) }

func flag(to *C.int32_t) *int32 { return (*int32)(unsafe.Pointer(to)) }

func text(t C.hamr_store_text) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(t.text)), t.bytes))
}

func objects(ids *C.hamr_store_id, n C.int64_t) []bridge.StoreID {
	return unsafe.Slice(setObject(ids), n)
}

//export hamrServe
func hamrServe(options *C.constant_options, server *C.uint64_t, found **C.char) *C.hamr_error {
	o := (*C.hamr_store_options)(unsafe.Pointer(options))
	token, listens, err := bridge.Serve(store.ServerOptions{
		Path: C.GoString(o.path), Spill: C.GoString(o.spill), Socket: int(o.socket), HostLimit: int64(o.host),
		DeviceLimit: int64(o.device), Ready: int64(o.ready), MaxMetadata: int(o.metadata),
	}, o.spill_devices != 0)
	if err == nil {
		*server, *found = C.uint64_t(token), C.CString(listens)
	}
	return failure(err)
}

//export hamrConnect
func hamrConnect(how C.uint32_t, path *C.constant_char, milliseconds C.int64_t, session *C.uint64_t,
	found **C.char) *C.hamr_error {
	return failure(bridge.Connect(uint32(how), goString(path), int64(milliseconds), func(token uint64, at string) {
		*session, *found = C.uint64_t(token), C.CString(at)
	}))
}

func creation(array *C.hamr_array, flags C.uint32_t, metadata *C.constant_void, bytes C.size_t) bridge.Creation {
	return bridge.Creation{Of: descriptor(array), Flags: uint32(flags), Metadata: copied(metadata, bytes)}
}

func copied(from *C.constant_void, bytes C.size_t) []byte {
	if bytes == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(from)), bytes)...)
}

//export hamrCreateObject
func hamrCreateObject(how C.uint32_t, session C.uint64_t, array *C.hamr_array, flags C.uint32_t,
	metadata *C.constant_void, bytes C.size_t, id *C.hamr_store_id, token *C.uint64_t) *C.hamr_error {
	what := creation(array, flags, metadata, bytes)
	return failure(bridge.CreateObject(asking(how, session), what, descriptor(array), setObject(id), number(token)))
}

//export hamrPutObject
func hamrPutObject(how C.uint32_t, session C.uint64_t, array *C.hamr_array, allocator, device C.int32_t,
	flags C.uint32_t, metadata *C.constant_void, bytes C.size_t, id *C.hamr_store_id) *C.hamr_error {
	what := creation(array, flags, metadata, bytes)
	return failure(bridge.PutObject(asking(how, session), what, backends.Allocator(allocator), int(device),
		setObject(id)))
}

// namesOf are n texts; none where there are none.
func namesOf(names *C.constant_text, n C.int64_t) []string {
	if names == nil {
		return nil
	}
	list := make([]string, n)
	for i, t := range unsafe.Slice((*C.hamr_store_text)(unsafe.Pointer(names)), n) {
		list[i] = text(t)
	}
	return list
}

//export hamrGetObjects
func hamrGetObjects(how C.uint32_t, session C.uint64_t, n C.int64_t, names *C.constant_text, ids *C.hamr_store_id,
	results *C.constant_array, tokens *C.uint64_t) *C.hamr_error {
	to, err := descriptors("results", results, n)
	if err != nil {
		return failure(err)
	}
	return failure(bridge.GetObjects(asking(how, session), namesOf(names, n), objects(ids, n), to,
		unsafe.Slice(number(tokens), n)))
}

//export hamrPutObjects
func hamrPutObjects(how C.uint32_t, session C.uint64_t, n C.int64_t, arrays *C.constant_array, allocator,
	device C.int32_t, flags C.uint32_t, metadata *C.constant_void, bytes C.size_t, names *C.constant_text,
	ids *C.hamr_store_id) *C.hamr_error {
	from, err := descriptors("arrays", arrays, n)
	if err != nil {
		return failure(err)
	}
	return failure(bridge.PutObjects(asking(how, session), from, uint32(flags), copied(metadata, bytes),
		backends.Allocator(allocator), int(device), namesOf(names, n), objects(ids, n)))
}

//export hamrDeleteObjects
func hamrDeleteObjects(how C.uint32_t, session C.uint64_t, ids *C.constant_id, n C.int64_t,
	force C.int32_t) *C.hamr_error {
	wanted := slices.Clone(objects((*C.hamr_store_id)(unsafe.Pointer(ids)), n))
	return failure(bridge.DeleteObjects(asking(how, session), wanted, force != 0))
}

//export hamrWaitForObjects
func hamrWaitForObjects(how C.uint32_t, session C.uint64_t, ids *C.constant_id, n, count, milliseconds C.int64_t,
	ready *C.hamr_store_id, found *C.int64_t) *C.hamr_error {
	wanted := slices.Clone(objects((*C.hamr_store_id)(unsafe.Pointer(ids)), n))
	return failure(bridge.WaitForObjects(asking(how, session), wanted, int(count), int64(milliseconds),
		func(sealed []bridge.StoreID) {
			*found = C.int64_t(copy(objects(ready, n), sealed))
		}))
}

// paged is a page in one block: the objects, what their names are, and the texts.
func paged(found []store.Info, after uint64) *C.hamr_store_page {
	var texts []string
	names := 0
	problems := make([]string, len(found))
	for i, info := range found {
		problems[i] = bridge.ProblemOf(info)
		texts = append(append(texts, deviceText(info), problems[i], string(info.Metadata)), info.Names...)
		names += len(info.Names)
	}
	size, each, name := unsafe.Sizeof(C.hamr_store_page{}), unsafe.Sizeof(C.hamr_store_object{}),
		unsafe.Sizeof(C.hamr_store_text{})
	at, b := newBlock(size+each*uintptr(len(found))+name*uintptr(names), nil, texts...)
	objects := unsafe.Slice((*C.hamr_store_object)(unsafe.Add(at, size)), len(found))
	named := unsafe.Slice((*C.hamr_store_text)(unsafe.Add(at, size+each*uintptr(len(found)))), names)
	for i, info := range found {
		objects[i] = C.hamr_store_object{
			info: described(info), device: b.text(deviceText(info)), problem: b.text(problems[i]),
			metadata: b.textOf(string(info.Metadata)), count: C.int64_t(len(info.Names)),
			names: unsafe.SliceData(named),
		}
		for k, text := range info.Names {
			named[k] = b.textOf(text)
		}
		named = named[len(info.Names):]
	}
	page := (*C.hamr_store_page)(at)
	*page = C.hamr_store_page{after: C.uint64_t(after), count: C.int64_t(len(found)),
		objects: unsafe.SliceData(objects)}
	return page
}

func (b *block) textOf(text string) C.hamr_store_text {
	return C.hamr_store_text{text: b.text(text), bytes: C.int64_t(len(text))}
}

func deviceText(found store.Info) string {
	if found.Device == (backends.UUID{}) {
		return "host"
	}
	return found.Device.String()
}

func described(found store.Info) C.hamr_store_info {
	info := C.hamr_store_info{
		bytes: C.int64_t(found.Bytes), leases: C.int64_t(found.Leases), element: C.int32_t(found.Layout.Type),
		ndim: C.int32_t(found.Layout.NDim()), flags: C.uint32_t(bridge.ObjectFlags(found)),
	}
	*setObject(&info.id) = found.ID
	*(*[16]byte)(unsafe.Pointer(&info.device)) = found.Device
	for i, n := range found.Layout.Shape {
		info.shape[i] = C.int64_t(n)
	}
	return info
}

// reported is a server's figures in one block.
func reported(t store.Statistics) *C.hamr_store_report {
	memories := slices.SortedFunc(slices.Values(t.Memories), func(a,
		b store.MemoryStatistics) int {
		return cmp.Compare(a.Name, b.Name)
	})
	var names []string
	for _, m := range memories {
		names = append(names, m.Name)
	}
	size := unsafe.Sizeof(C.hamr_store_report{})
	at, b := newBlock(size+unsafe.Sizeof(C.hamr_store_memory{})*uintptr(len(memories)), nil, names...)
	first := (*C.hamr_store_memory)(unsafe.Add(at, size))
	for i, m := range memories {
		unsafe.Slice(first, len(memories))[i] = C.hamr_store_memory{
			name: b.text(m.Name), limit: C.int64_t(m.Limit), used: C.int64_t(m.Used), peak: C.int64_t(m.Peak),
			lingering: C.int64_t(m.Lingering), ready: C.int64_t(m.Ready),
		}
	}
	report := (*C.hamr_store_report)(at)
	*report = C.hamr_store_report{
		objects: C.int64_t(t.Objects), unsealed: C.int64_t(t.Unsealed), names: C.int64_t(t.Names),
		leases:      C.int64_t(t.Leases),
		connections: C.int64_t(t.Sessions), table: C.int64_t(t.Table), table_limit: C.int64_t(t.TableLimit),
		evicted: C.int64_t(t.Evicted), spilled: C.int64_t(t.Spilled), spills: C.int64_t(t.Spills),
		restored: C.int64_t(t.Restored),
		requests: C.int64_t(t.Requests), refused: C.int64_t(t.Refused), breaches: C.int64_t(t.Breaches),
		ready_hits: C.int64_t(t.ReadyHits), ready_misses: C.int64_t(t.ReadyMisses), count: C.int64_t(len(memories)),
		memories: first,
	}
	return report
}

// told is events in one block.
func told(list []store.Event) *C.hamr_store_events {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Kind.String(), e.Name)
	}
	size := unsafe.Sizeof(C.hamr_store_events{})
	at, b := newBlock(size+unsafe.Sizeof(C.hamr_store_event{})*uintptr(len(list)), nil, texts...)
	first := (*C.hamr_store_event)(unsafe.Add(at, size))
	for i, e := range list {
		event := &unsafe.Slice(first, len(list))[i]
		*event = C.hamr_store_event{kind: b.text(e.Kind.String()), name: b.textOf(e.Name), missed: C.int64_t(e.Missed)}
		*setObject(&event.id) = e.ID
	}
	events := (*C.hamr_store_events)(at)
	*events = C.hamr_store_events{count: C.int64_t(len(list)), events: first}
	return events
}
