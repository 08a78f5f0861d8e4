package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"hamr/backends"
)

// visit is the time that an operation spends in a context. It lives on the heap,
// where the driver may write to it, and is reused.
type visit struct {
	b       *contextFloor
	context uintptr // current during the visit
	before  uintptr // and before it
	pushed  bool
	out     [4]uint64         // for what driver calls return through pointers
	pointer [1]unsafe.Pointer // for what they read through pointers to pointers
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// scratch returns a visit to nowhere, for calls that need no context. Unlike a
// variable, it is never on the stack, which moves.
func scratch() *visit { return visits.Get().(*visit) }

// slot is the address of v.out[i], cleared.
func (v *visit) slot(i int) uintptr {
	v.out[i] = 0
	return uintptr(unsafe.Pointer(&v.out[i]))
}

// enter makes the context that serves a device and a stream current on this OS
// thread and keeps the goroutine there until leave, which must be called. That is
// the stream's own context; the special streams belong to whatever is current, so
// they are taken in the device's primary context. Device numbers below zero, of
// memory that belongs to no device, mean the first device.
func (b *contextFloor) enter(device int, stream backends.Stream) (*visit, error) {
	v := scratch()
	v.b = b
	context, err := v.contextOf(device, stream)
	if err == nil {
		err = v.activate(context)
	}
	if err != nil {
		visits.Put(v)
		return nil, err
	}
	return v, nil
}

// enterContext is enter for a context that is known.
func (b *contextFloor) enterContext(context uintptr) (*visit, error) {
	v := scratch()
	v.b = b
	if err := v.activate(context); err != nil {
		visits.Put(v)
		return nil, err
	}
	return v, nil
}

func (v *visit) contextOf(device int, stream backends.Stream) (uintptr, error) {
	if stream > perThreadStream {
		if context, ok := v.b.streams.contextOf(stream); ok {
			return context, nil
		}
		return v.contextOfForeign(device, stream)
	}
	return v.b.primaryContext(device)
}

func (v *visit) contextOfForeign(device int, stream backends.Stream) (uintptr, error) {
	function, code := v.b.contextOfStream(v, device, stream)
	if code == invalidContext {
		// Drivers may want some context to be current, whichever.
		inner, err := v.b.enter(max(0, min(device, len(v.b.devices)-1)), defaultStream)
		if err != nil {
			return 0, err
		}
		defer inner.leave()
		function, code = v.b.contextOfStream(v, device, stream)
	}
	return uintptr(v.out[0]), v.b.finish(function, code)
}

func (v *visit) activate(context uintptr) error {
	runtime.LockOSThread()
	err := v.b.finish(v.b.getCurrent(v))
	v.before, v.context, v.pushed = uintptr(v.out[0]), context, false
	if err == nil && v.before != context {
		v.pushed = true
		err = v.b.push(context)
		if err != nil {
			v.restore()
		}
	}
	if err != nil {
		runtime.UnlockOSThread()
	}
	return err
}

// leave ends the visit. It reports no error: the operation is over, and what
// still troubles the context shows at the next call.
func (v *visit) leave() {
	if v.pushed && v.b.pop(v) != success {
		v.restore()
	}
	runtime.UnlockOSThread()
	v.pointer[0] = nil
	visits.Put(v)
}

// restore puts the caller's context back after a push or pop that failed: these
// may report an earlier failure and have done their work, or not.
func (v *visit) restore() {
	was := func() bool {
		_, code := v.b.getCurrent(v)
		return code == success && uintptr(v.out[0]) == v.before
	}
	if _, code := v.b.getCurrent(v); code != success || uintptr(v.out[0]) == v.before {
		return
	}
	if v.b.pop(v) == success && was() {
		return
	}
	_ = v.b.setCurrent(v.before)
}
