package cabi

// #include <stdlib.h>
// #include "constant.h"
import "C"

import (
	"reflect"
	"unsafe"

	"hamr/pyhamr/internal/bridge"
)

// rowsOf is rows in one block: the rows, their cells, and the texts.
func rowsOf(list bridge.Rows) *C.hamr_rows {
	var texts []string
	count := 0
	for _, row := range list {
		count += len(row)
		for _, value := range row {
			if text, ok := value.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	size, each := unsafe.Sizeof(C.hamr_rows{}), unsafe.Sizeof(C.hamr_row{})*uintptr(len(list))
	at, b := newBlock(size+each+unsafe.Sizeof(C.hamr_cell{})*uintptr(count), nil, texts...)
	rows := unsafe.Slice((*C.hamr_row)(unsafe.Add(at, size)), len(list))
	cells := unsafe.Slice((*C.hamr_cell)(unsafe.Add(at, size+each)), count)
	for i, row := range list {
		rows[i] = C.hamr_row{count: C.int64_t(len(row)), cells: unsafe.SliceData(cells)}
		for k, value := range row {
			cells[k] = b.cell(value)
		}
		cells = cells[len(row):]
	}
	made := (*C.hamr_rows)(at)
	*made = C.hamr_rows{count: C.int64_t(len(list)), rows: unsafe.SliceData(rows)}
	return made
}

func (b *block) cell(value any) C.hamr_cell {
	if text, ok := value.(string); ok {
		return C.hamr_cell{kind: C.HAMR_CELL_TEXT, text: b.text(text)}
	}
	switch v := reflect.ValueOf(value); {
	case value == nil:
		return C.hamr_cell{kind: C.HAMR_CELL_NONE}
	case v.Kind() == reflect.Bool:
		return C.hamr_cell{kind: C.HAMR_CELL_TRUTH, number: C.int64_t(truth(v.Bool()))}
	case v.CanUint():
		return C.hamr_cell{kind: C.HAMR_CELL_UNSIGNED, number: C.int64_t(v.Uint())}
	default:
		return C.hamr_cell{kind: C.HAMR_CELL_NUMBER, number: C.int64_t(v.Int())}
	}
}
