package host

/*
#cgo CFLAGS: -O2
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "heap.h"
#include "shared.h"
*/
import "C"

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
)

// heap is what the backend needs of the C and C++ runtimes; tests replace it.
type heap interface {
	// allocate returns zero when memory ran out.
	allocate(size int, zero bool) backends.Address
	free(at backends.Address)
}

// cHeap is the C library's.
type cHeap struct{}

func (cHeap) allocate(size int, zero bool) backends.Address {
	return backends.Address(C.hamr_heap_allocate(C.size_t(size), flag(zero)))
}

func (cHeap) free(at backends.Address) { C.hamr_heap_free(C.uintptr_t(at)) }

// operators are C++'s operator new[] and delete[], by address: linking them
// would tie every program to one C++ runtime.
type operators struct {
	create, destroy               uintptr
	createAligned, destroyAligned uintptr // of C++17; zero, where the runtime is older
	aligned                       *alignedBlocks
}

// alignedBlocks are those that the operator for a given alignment made, and that its delete must free. The plain
// delete frees blocks that a program made.
type alignedBlocks struct {
	mutex sync.Mutex
	at    map[backends.Address]struct{}
}

func (b *alignedBlocks) add(at backends.Address) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.at[at] = struct{}{}
}

func (b *alignedBlocks) remove(at backends.Address) bool {
	if b == nil {
		return false
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	_, has := b.at[at]
	delete(b.at, at)
	return has
}

func (o operators) allocate(size int, zero bool) backends.Address {
	if o.createAligned == 0 || o.destroyAligned == 0 {
		return backends.Address(C.hamr_operator_allocate(C.uintptr_t(o.create), 0, C.size_t(size), flag(zero)))
	}
	at := backends.Address(C.hamr_operator_allocate(C.uintptr_t(o.createAligned), 1, C.size_t(size), flag(zero)))
	if at != 0 {
		o.aligned.add(at)
	}
	return at
}

func (o operators) free(at backends.Address) {
	if o.aligned.remove(at) {
		C.hamr_operator_free(C.uintptr_t(o.destroyAligned), 1, C.uintptr_t(at))
		return
	}
	C.hamr_operator_free(C.uintptr_t(o.destroy), 0, C.uintptr_t(at))
}

// usable returns how many bytes a block of the C library's heap has that was made for size bytes.
func usable(at backends.Address, size int) int {
	return max(size, int(C.hamr_heap_usable(C.uintptr_t(at))))
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// cppRuntimes are where operator new[] is looked for. The process's own scope,
// the empty name, comes first: a program may have replaced it.
var cppRuntimes = []string{"", "libstdc++.so.6", "libc++.so.1"}

// findOperators looks in each library and answers for the first that has both.
// Its error is an *backends.UnavailableError.
func findOperators(libraries []string) (operators, error) {
	unavailable := &backends.UnavailableError{Backend: "host allocator cpp"}
	var reasons []string
	for _, library := range libraries {
		found, err := findOperatorsIn(library)
		if err == nil {
			return found, nil
		}
		name := library
		if name == "" {
			name = "operator new[] in the process"
		}
		unavailable.Tried = append(unavailable.Tried, name)
		reasons = append(reasons, err.Error())
	}
	unavailable.Reason = strings.Join(reasons, "; ")
	return operators{}, unavailable
}

func findOperatorsIn(library string) (operators, error) {
	var name *C.char
	if library != "" {
		name = C.CString(library)
		defer C.free(unsafe.Pointer(name))
	}
	var at [4]C.uintptr_t
	var message [512]C.char
	if C.hamr_find_operators(name, &at[0], &message[0], C.size_t(len(message))) == 0 {
		return operators{}, errors.New(C.GoString(&message[0]))
	}
	return operators{create: uintptr(at[0]), destroy: uintptr(at[1]),
		createAligned: uintptr(at[2]), destroyAligned: uintptr(at[3]),
		aligned: &alignedBlocks{at: map[backends.Address]struct{}{}}}, nil
}

// found keeps C++'s operators from their first use on.
var found atomic.Pointer[operators]

var processOperators = sync.OnceValues(func() (operators, error) {
	o, err := findOperators(cppRuntimes)
	if err == nil {
		found.Store(&o)
	}
	return o, err
})

// FreeFunction returns the address of the C function void(*)(void *) that gives
// back memory of a: free for Malloc, operator delete[] for CPP, what ends the process's own
// mapping for Shared. It is zero for other allocators, and for CPP until somebody allocates
// by it. A forked child, which cannot call into Go, frees with it. Safe for concurrent use.
func FreeFunction(a backends.Allocator) uintptr {
	switch a {
	case backends.Malloc:
		return uintptr(C.hamr_heap_free_function())
	case backends.Shared:
		return uintptr(C.hamr_shared_free_function())
	case backends.CPP:
		if o := found.Load(); o != nil {
			return o.destroy
		}
	}
	return 0
}
