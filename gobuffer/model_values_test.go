package gobuffer_test

import (
	"unsafe"

	"hamr/arrayiface"
)

// value is what an element should be; nobody may ask for one that is not known.
type value struct {
	number int64
	known  bool
}

func number(kind arrayiface.ElementType, from []byte) int64 {
	p := unsafe.Pointer(&from[0])
	switch kind {
	case arrayiface.Int32:
		return int64(*(*int32)(p))
	case arrayiface.Int64:
		return *(*int64)(p)
	}
	return int64(*(*float64)(p))
}

// image is list as bytes; what is not known is garbage.
func image(kind arrayiface.ElementType, list []value) (data []byte) {
	for _, v := range list {
		if !v.known {
			v.number = -99
		}
		data = append(data, element(kind, int(v.number))...)
	}
	return data
}

// compare says what is wrong with elements that somebody saw.
func (w *modelWorld) compare(what string, want []value, got []int64) {
	if len(got) != len(want) {
		w.t.Errorf("wrong size: %s has %d elements, not %d", what, len(got), len(want))
		return
	}
	for i, v := range want {
		if v.known && v.number != got[i] {
			w.t.Errorf("wrong value seen by %s: element %d of %d is %d, not %d", what, i, len(want), got[i], v.number)
			return
		}
	}
}
