package cuda

import (
	"errors"
	"runtime"
	"testing"

	"hamr/backends"
)

func BenchmarkZZ(b *testing.B) {
	r := New(func(string) string { return "" })
	if err := r.Probe(); err != nil {
		b.Skip(err)
	}
	runtime.LockOSThread()
	_, _ = r.Activate(0)
	stream, _ := r.NewStream(0)
	m := meter{r, stream}
	device := reserved(b, r, backends.CUDA, 1024)
	_, host := pageable(b, 1024)
	d := &r.driver
	m.run(b, "rawD2H", 0, func() error {
		return r.call(d.MemcpyToHostAsync, uintptr(host.Address), uintptr(device.Address), 1024, uintptr(stream))
	})
	m.run(b, "rawD2HSync", 0, func() error {
		return r.call(d.MemcpyToHost, uintptr(host.Address), uintptr(device.Address), 1024)
	})
	m.run(b, "rawH2D", 0, func() error {
		return r.call(d.MemcpyToDevice, uintptr(device.Address), uintptr(host.Address), 1024, uintptr(stream))
	})
	m.run(b, "rawH2D+sync", 0, func() error {
		return errors.Join(r.call(d.MemcpyToDevice, uintptr(device.Address), uintptr(host.Address), 1024, uintptr(stream)), r.Synchronize(0, stream))
	})
	m.run(b, "roundtrip", 0, func() error {
		return errors.Join(copied(r.Copy(device, host, 1024, stream)), copied(r.Copy(host, device, 1024, stream)))
	})
	m.run(b, "query", 0, func() error { return r.call(d.StreamQuery, uintptr(stream)) })
	m.run(b, "getcurrent", 0, func() error { return r.call(d.CtxGetCurrent, scratchSlot) })
	pool, _ := r.pool(0)
	m.run(b, "rawallocfree", 0, func() error {
		v := scratch()
		if err := r.call(d.MemAllocFromPool, v.slot(0), 1024, pool, uintptr(stream)); err != nil {
			return err
		}
		err := r.call(d.MemFreeInStreamOrder, uintptr(v.out[0]), uintptr(stream))
		visits.Put(v)
		return err
	})
	e, _ := r.NewEvent(0)
	m.run(b, "rawrecord", 0, func() error { return r.call(d.EventRecord, uintptr(e), uintptr(stream)) })
	m.run(b, "rawwait", 0, func() error { return r.call(d.StreamWaitEvent, 1, uintptr(e), 0) })
	m.run(b, "rawwaitown", 0, func() error { return r.call(d.StreamWaitEvent, uintptr(stream), uintptr(e), 0) })
}

var scratchVisit = new(visit)
var scratchSlot = scratchVisit.slot(0)
