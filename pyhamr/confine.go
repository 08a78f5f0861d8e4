package pyhamr

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	plenty        = 2 << 30  // bytes with which the runtime will hardly be refused any
	spareThreads  = 2        // beside those of the processors: Go calls that block are given one
	exercise      = 3        // rounds: what is swept in one is unswept in the next, and so on
	ofEachSize    = 16 << 10 // bytes of objects of a size in a round
	largestObject = 32 << 10 // above it, memory is taken by pages
)

// Confine prepares the Go runtime for a process whose address space is limited: memory is the most bytes that it should
// have, processors how many threads may run Go code, and heap how many bytes of address space its heap is to have from
// the start. Whatever the runtime asks the system for later, and does not get, ends the process. So where there is
// little it is made to have its threads and what describes its heap before they are needed, which takes a tenth of a
// second and 8 MiB. The arena of 64 MiB that it reserves at first is not enough for as large a heap: where in it the
// heap begins is random, as near as 4 MiB to its end (runtime/mheap.go of Go 1.26, randomizeHeapBase).
//
//hamr:blocking
func Confine(memory, processors, heap int) int {
	debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), int64(memory)))
	runtime.GOMAXPROCS(max(1, min(runtime.GOMAXPROCS(0), processors)))
	if memory < plenty {
		startThreads(runtime.GOMAXPROCS(0) + spareThreads)
		runtime.KeepAlive(make([]byte, heap)) // reserved, but not touched
		exerciseHeap()
	}
	return 0
}

// startThreads makes the runtime have as many threads: it keeps those that are idle.
func startThreads(count int) {
	var started, over sync.WaitGroup
	started.Add(count)
	over.Add(count)
	for range count {
		go func() {
			defer over.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			started.Wait()
		}()
	}
	over.Wait()
}

// exerciseHeap has objects of all sizes made, found alive by the collector, and found dead, while another goroutine
// runs. The runtime never gives back the lists and queues that it makes for that.
func exerciseHeap() {
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			runtime.Gosched() // the library interrupts nobody who calls nothing
		}
	}()
	var alive []unsafe.Pointer
	for range exercise {
		before := alive
		alive = objectsOfAllSizes()
		runtime.GC()
		runtime.KeepAlive(before)
	}
	runtime.KeepAlive(alive)
	alive = nil
	runtime.GC()
}

func objectsOfAllSizes() (list []unsafe.Pointer) {
	var known runtime.MemStats
	runtime.ReadMemStats(&known)
	sizes := []int{}
	for _, class := range known.BySize {
		if class.Size >= 8 {
			sizes = append(sizes, int(class.Size))
		}
	}
	for size := sizes[len(sizes)-1] + 1024; size <= largestObject; size += 1024 { // it lists not all
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		for range 2 + ofEachSize/size {
			list = append(list, unsafe.Pointer(unsafe.SliceData(make([]byte, size))),
				unsafe.Pointer(unsafe.SliceData(make([]unsafe.Pointer, size/8))))
		}
	}
	return list
}
