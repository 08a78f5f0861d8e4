package gobuffer

import (
	"runtime"
	"sync"
	"unsafe"

	"hamr/backends"
)

// adopted holds the pins of slices that buffers use. A buffer that nobody closes keeps its slice, as it would keep
// other memory: a device may be reading it, and a Pinner that is collected while it pins something ends the program.
var adopted sync.Map

// Adopt returns a buffer of the elements of values, without a copy: each sees what the other writes. The array behind
// values is pinned, so that devices and C code may use its address. It stays alive until the memory is released, which
// is Close unless views, handles or other libraries still hold it. hamr never frees it. The caller closes the buffer.
//
// Until then values belong to the buffer. The program may read them while no method of the buffer changes them, and
// change them while no method of the buffer runs. If Async work may be under way, it calls Synchronize first. The
// elements count as memory of backends.Malloc. Resize, Append and Reserve to more elements than values has copy them to
// new memory, and values then no longer belong to the buffer. The room behind values, up to their capacity, is not
// used. If values lie in memory from elsewhere, as of a mapped file, that must not be unmapped before.
func Adopt[T Element](values []T) (*Buffer[T], error) {
	if len(values) == 0 {
		return New[T](backends.Malloc, 0)
	}
	r, err := Default()
	if err != nil {
		return nil, err
	}
	pinned := new(runtime.Pinner)
	pinned.Pin(unsafe.SliceData(values))
	adopted.Store(pinned, nil)
	letGo := func() {
		adopted.Delete(pinned)
		pinned.Unpin()
	}
	a, err := onGoHeap(r, values, letGo)
	if err != nil {
		letGo()
		return nil, err
	}
	a.options.Transfer = SyncHost
	return &Buffer[T]{a}, nil
}
