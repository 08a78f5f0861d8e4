package cabi

// #include <stdlib.h>
// #include "constant.h"
// #include "hamr/functions.h"
import "C"

import (
	"unsafe"

	"hamr/pyhamr/internal/bridge"
)

// block is one piece of C's memory that holds a struct, and behind it all that the struct
// points to: whoever gets it frees it as a whole.
type block struct {
	lists, texts unsafe.Pointer // where the next list of pointers goes, and the next text
}

// list is what a block has to hold besides the struct.
type list []string

// newBlock has room for a struct of some bytes, lists of pointers and their texts, and further texts.
func newBlock(size uintptr, lists []list, texts ...string) (at unsafe.Pointer, b block) {
	pointers, bytes := uintptr(0), uintptr(0)
	for _, l := range lists {
		pointers += uintptr(len(l) + 1)
		for _, text := range l {
			bytes += uintptr(len(text) + 1)
		}
	}
	for _, text := range texts {
		bytes += uintptr(len(text) + 1)
	}
	at = C.calloc(1, C.size_t(size+pointers*unsafe.Sizeof(at)+bytes))
	b.lists = unsafe.Add(at, size)
	b.texts = unsafe.Add(b.lists, pointers*unsafe.Sizeof(at))
	return at, b
}

// text puts a text into the block; NULL for none.
func (b *block) text(text string) *C.char {
	if text == "" {
		return nil
	}
	at := b.texts
	copy(unsafe.Slice((*byte)(at), len(text)), text)
	b.texts = unsafe.Add(at, len(text)+1)
	return (*C.char)(at)
}

// list puts texts into the block; NULL ends them.
func (b *block) list(texts list) **C.char {
	at := (**C.char)(b.lists)
	pointers := unsafe.Slice(at, len(texts)+1)
	b.lists = unsafe.Add(b.lists, uintptr(len(pointers))*unsafe.Sizeof(at))
	for i, text := range texts {
		empty := b.texts // of calloc's zeros
		if pointers[i] = b.text(text); pointers[i] == nil {
			pointers[i] = (*C.char)(empty)
			b.texts = unsafe.Add(empty, 1)
		}
	}
	return at
}

// failure is what C gets for an error; NULL for none.
func failure(err error) *C.hamr_error {
	if err == nil {
		return nil
	}
	f := bridge.Classify(err)
	size := unsafe.Sizeof(C.hamr_error{})
	at, b := newBlock(size+unsafe.Sizeof(C.hamr_holder{})*uintptr(len(f.Holders)), []list{f.Tried}, f.Message, f.Source,
		f.Name, f.Stack)
	holders := (*C.hamr_holder)(unsafe.Add(at, size))
	for i, h := range f.Holders {
		unsafe.Slice(holders, len(f.Holders))[i] = C.hamr_holder{process: C.int64_t(h.Process), bytes: C.int64_t(h.Bytes)}
	}
	e := (*C.hamr_error)(at)
	*e = C.hamr_error{
		kind:    C.int32_t(f.Kind),
		code:    C.int32_t(f.Code),
		size:    C.int64_t(f.Size),
		message: b.text(f.Message),
		source:  b.text(f.Source),
		name:    b.text(f.Name),
		tried:   b.list(f.Tried),
		stack:   b.text(f.Stack),
		limit:   C.int64_t(f.Limit),
		used:    C.int64_t(f.Used),
		count:   C.int64_t(len(f.Holders)),
		holders: holders,
	}
	if e.message == nil {
		e.message = (*C.char)(b.texts)
	}
	return e
}

// Failure is what C gets for an error, a hamr_error; nil for none.
func Failure(err error) unsafe.Pointer { return unsafe.Pointer(failure(err)) }

func strings(texts list) *C.hamr_strings {
	at, b := newBlock(unsafe.Sizeof(C.hamr_strings{}), []list{texts})
	s := (*C.hamr_strings)(at)
	*s = C.hamr_strings{count: C.int64_t(len(texts)), items: b.list(texts)}
	return s
}

// pairs are texts two by two.
func pairs(known [][2]string) (texts list) {
	for _, pair := range known {
		texts = append(texts, pair[:]...)
	}
	return texts
}

func goString(text *C.constant_char) string { return C.GoString((*C.char)(unsafe.Pointer(text))) }
