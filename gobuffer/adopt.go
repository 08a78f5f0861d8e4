package gobuffer

import (
	"runtime"
	"sync"
	"unsafe"

	"hamr/backends"
)

// adopted are the pins of slices that buffers have. A buffer that nobody closes keeps its slice, as it would keep other
// memory: a device may be reading it, and the end of a Pinner that still pins something ends the program.
var adopted sync.Map

// Adopt returns a buffer whose elements are those of values, without a copy: what one writes, the other has. The array
// behind values is pinned, so that devices and C code may be given its address, and kept alive until the last use of
// the memory is released, which is Close unless views, handles or other libraries have it still. hamr never frees it.
// The caller closes the buffer.
//
// Until then values belong to the buffer as the elements of any other one: the program uses them itself only while no
// method of the buffer runs that changes them, or reads them if they are to be changed, and after Synchronize where
// Async work may be under way. They count as memory of backends.Malloc, of which new memory is taken where there are to
// be more elements than values has: Resize, Append and Reserve then copy them, and values are no longer the buffer's.
// The array's room behind values, up to their capacity, is not used. Nor may memory from elsewhere that values lie in,
// as of a mapped file, be given back before.
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
