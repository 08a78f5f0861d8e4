package cuda

import (
	"fmt"
	"runtime"
	"testing"

	"hamr/backends"
)

func TestZZQuestions(t *testing.T) {
	r := openDriver(t, nil)
	foreign := r.newContext(t, 0)
	s := r.newForeignStream(t, foreign)
	e, _ := r.NewEvent(0)
	_ = r.Record(0, e, 0)
	own := r.newStream(t, 0)
	pend := func(what string, f func() int32) {
		r.inContext(t, 0, func() { fmt.Println("Q no context:", what, f()) })
		r.inContext(t, foreign, func() { fmt.Println("Q foreign context:", what, f()) })
	}
	d := &r.driver
	m := r.reserve(t, backends.CUDA, 0, 1<<20, 0)
	as := r.reserve(t, backends.CUDAAsync, 0, 1<<20, 0)
	_ = r.Synchronize(0, 0)
	_, h := pageable(t, 1<<20)
	pend("StreamGetCtx", func() int32 {
		v := scratch()
		c := r.try(d.StreamGetCtx, uintptr(s), v.slot(0))
		fmt.Println(uintptr(v.out[0]) == foreign)
		return c
	})
	pend("EventQuery", func() int32 { return r.try(d.EventQuery, uintptr(e)) })
	pend("EventRecord own", func() int32 { return r.try(d.EventRecord, uintptr(e), uintptr(own)) })
	pend("StreamWaitEvent own", func() int32 { return r.try(d.StreamWaitEvent, uintptr(own), uintptr(e), 0) })
	pend("StreamQuery own", func() int32 { return r.try(d.StreamQuery, uintptr(own)) })
	pend("StreamSynchronize own", func() int32 { return r.try(d.StreamSynchronize, uintptr(own)) })
	pend("Memset own", func() int32 { return r.try(d.Memset8, uintptr(m.Address), 3, 1000, uintptr(own)) })
	pend("H2D own", func() int32 {
		return r.try(d.MemcpyToDevice, uintptr(m.Address), uintptr(h.Address), 1000, uintptr(own))
	})
	pend("D2H own", func() int32 {
		return r.try(d.MemcpyToHostAsync, uintptr(h.Address), uintptr(m.Address), 1000, uintptr(own))
	})
	pend("alloc pool+free own", func() int32 {
		p, _ := r.pool(0)
		v := scratch()
		c := r.try(d.MemAllocFromPool, v.slot(0), 1000, p, uintptr(own))
		if c != 0 {
			return c
		}
		return 1000 + r.try(d.MemFreeInStreamOrder, uintptr(v.out[0]), uintptr(own))
	})
	pend("MemFree nothing", func() int32 { return r.try(d.MemFree, 16) })
	for _, a := range allocators {
		b := r.reserve(t, a, 0, 5000, 0)
		_ = r.Synchronize(0, 0)
		l, err := r.Locate(b.Address + 7)
		fmt.Printf("Q locate %s: %+v at %#x %v\n", a, l, b.Address, err)
	}
	_ = as
	for _, which := range []int{83, 88, 89, 100, 115} {
		v, err := r.attribute(r.devices[0], which)
		fmt.Println("Q attribute", which, v, err)
	}
	_, err := r.Allocate(backends.Request{Allocator: backends.CUDA, Size: 8, Device: 0, Stream: 0})
	fmt.Println("Q", err, runtime.NumCPU(), r.version)
}
