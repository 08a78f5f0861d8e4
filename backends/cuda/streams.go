package cuda

import (
	"maps"
	"sync"
	"sync/atomic"
	"syscall"

	"hamr/backends"
)

const (
	nonBlocking      = 1  // does not wait for the legacy stream, nor it for this one
	perThreadStreams = 16 // of each device; threads beyond share
)

// ownStreams knows the contexts of the streams made here, so that the driver need
// not be asked. It is read at every operation and changed seldom.
type ownStreams struct {
	mu       sync.Mutex
	contexts atomic.Pointer[map[backends.Stream]uintptr]
}

func (o *ownStreams) contextOf(s backends.Stream) (uintptr, bool) {
	contexts := o.contexts.Load()
	if contexts == nil {
		return 0, false
	}
	context, ok := (*contexts)[s]
	return context, ok
}

// set makes a context known; zero forgets it.
func (o *ownStreams) set(s backends.Stream, context uintptr) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changed := map[backends.Stream]uintptr{}
	if contexts := o.contexts.Load(); contexts != nil {
		maps.Copy(changed, *contexts)
	}
	if changed[s] = context; context == 0 {
		delete(changed, s)
	}
	o.contexts.Store(&changed)
}

// Resolve turns the default stream into the legacy one, and the per-thread one
// into a stream of the backend's that runs after what the calling thread's
// per-thread stream holds now. It belongs to the backend.
func (b *Backend) Resolve(device int, s backends.Stream) (backends.Stream, error) {
	switch s {
	case defaultStream, legacyStream:
		return legacyStream, nil
	case perThreadStream:
		return b.followThread(device)
	}
	return s, nil
}

func (b *Backend) followThread(number int) (backends.Stream, error) {
	d, err := b.device(number)
	if err != nil {
		return 0, err
	}
	v, err := b.enter(number, perThreadStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	s, err := v.streamOfThread(d)
	if err != nil {
		return 0, err
	}
	if code := b.try(b.driver.StreamQuery, b.native(perThreadStream)); code != notReady {
		return s, b.finish(b.driver.StreamQuery, code)
	}
	e, err := v.newEvent(d)
	if err != nil {
		return 0, err
	}
	if err = b.call(b.driver.EventRecord, e, b.native(perThreadStream)); err == nil {
		//mutate:skip a thread's default stream is not followed
		err = b.call(b.driver.StreamWaitEvent, b.native(s), e, 0)
	}
	v.giveBack(d, e)
	return s, err
}

func (v *visit) streamOfThread(d *device) (backends.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	place := &d.perThread[syscall.Gettid()%perThreadStreams]
	if *place != 0 {
		return *place, nil
	}
	var err error
	*place, err = v.newStream(nonBlocking)
	return *place, err
}

func (v *visit) newStream(flags uintptr) (backends.Stream, error) {
	if err := v.b.call(v.b.driver.StreamCreate, v.slot(0), flags); err != nil {
		return 0, err
	}
	s := backends.Stream(v.out[0])
	v.b.streams.set(s, v.context)
	return s, nil
}

// NewStream returns a stream that does not wait for the legacy one. It belongs to
// the caller until DestroyStream.
func (b *Backend) NewStream(device int) (backends.Stream, error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	return v.newStream(nonBlocking)
}

// NewLegacyStream returns a stream that waits for the legacy one, and that one for it. It belongs to
// the caller until DestroyStream.
func (b *Backend) NewLegacyStream(device int) (backends.Stream, error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	return v.newStream(0)
}

// DestroyStream ends a stream. Work on it is still done.
func (b *Backend) DestroyStream(device int, s backends.Stream) error {
	v, err := b.enter(device, s)
	if err != nil {
		return err
	}
	defer v.leave()
	// Afterwards the handle may be another's at once.
	_, own := b.streams.contextOf(s)
	if own {
		b.endStream(s)
	}
	if b.dialect.EndsWork {
		err = b.call(b.driver.StreamSynchronize, b.native(s))
	}
	if err == nil {
		err = b.call(b.driver.StreamDestroy, b.native(s))
	}
	if err != nil && own {
		b.streams.set(s, v.context)
	}
	return err
}

// Synchronize blocks until all work on s is done, without slices.
func (b *Backend) Synchronize(device int, s backends.Stream) error {
	v, err := b.enter(device, s)
	if err != nil {
		return err
	}
	defer v.leave()
	//mutate:skip waiting for a stream does not wait
	return b.call(b.driver.StreamSynchronize, b.native(s))
}

// SynchronizeDevice blocks until all work in the device's primary context is done, which is not
// made for it. It fails while a stream of the context is being captured into a graph.
func (b *Backend) SynchronizeDevice(device int) error {
	d, err := b.device(device)
	if err != nil {
		return err
	}
	if d.context.Load() == 0 && b.hasContexts() {
		v := scratch()
		err := b.callWithPointers(b.driver.DevicePrimaryCtxState, uintptr(d.handle), v.slot(0), v.slot(1))
		//mutate:always a device that only another library uses is not waited for
		if err != nil || int32(v.out[1]) == 0 {
			return err
		}
	}
	v, err := b.enter(device, defaultStream)
	return v.synchronize(err)
}

// SynchronizeContext is SynchronizeDevice for a context of somebody else's.
func (b *Backend) SynchronizeContext(context uintptr) error {
	v, err := b.enterContext(context)
	return v.synchronize(err)
}

// synchronize waits for the context that was entered, unless that failed, and leaves it.
func (v *visit) synchronize(err error) error {
	if err != nil {
		return err
	}
	defer v.leave()
	//mutate:skip waiting for a device does not wait
	return v.b.call(v.b.driver.CtxSynchronize)
}

// Idle reports whether all work on s is done, without waiting. Asked about the legacy
// stream while another stream of the context is captured, which would end the capture,
// it returns backends.ErrCapturing.
func (b *Backend) Idle(device int, s backends.Stream) (bool, error) {
	v, err := b.enter(device, s)
	if err != nil {
		return false, err
	}
	defer v.leave()
	if s <= legacyStream && b.driver.StreamIsCapturing != 0 {
		switch code := b.try(b.driver.StreamIsCapturing, b.native(legacyStream), v.slot(0)); code {
		case success:
		case captureImplicit:
			return false, backends.ErrCapturing
		default:
			return false, b.finish(b.driver.StreamIsCapturing, code)
		}
	}
	return b.answered(b.driver.StreamQuery, b.native(s))
}

// answered makes an answer of a code that says whether work is done.
func (b *Backend) answered(function uintptr, arguments ...uintptr) (bool, error) {
	code := b.try(function, arguments...)
	if code == notReady {
		return false, nil
	}
	return code == success, b.finish(function, code)
}
