package cuda

import (
	"errors"
	"syscall"

	"hamr/backends"
)

const nonBlocking = 1 // does not wait for the legacy stream, nor it for this one

// Resolve returns the legacy stream for the default one. For the per-thread stream it returns a stream of the
// backend's, which runs after all work that the calling thread's per-thread stream holds now. The backend keeps that
// stream.
func (b *orderFloor) Resolve(device int, s backends.Stream) (backends.Stream, error) {
	switch s {
	case defaultStream, legacyStream:
		return legacyStream, nil
	case perThreadStream:
		return b.followThread(device)
	}
	return s, nil
}

func (b *orderFloor) followThread(number int) (backends.Stream, error) {
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
func (b *orderFloor) NewStream(device int) (backends.Stream, error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	return v.newStream(nonBlocking)
}

// NewLegacyStream returns a stream that waits for the legacy one, and that one for it. It belongs to
// the caller until DestroyStream.
func (b *orderFloor) NewLegacyStream(device int) (backends.Stream, error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	return v.newStream(0)
}

// DestroyStream ends a stream. Work on it is still done.
func (b *orderFloor) DestroyStream(device int, s backends.Stream) error {
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

// Synchronize blocks in the driver until all work on s is done.
func (b *orderFloor) Synchronize(device int, s backends.Stream) error {
	v, err := b.enter(device, s)
	if err != nil {
		return err
	}
	defer v.leave()
	//mutate:skip waiting for a stream does not wait
	return b.call(b.driver.StreamSynchronize, b.native(s))
}

// SynchronizeDevice blocks until all work in the device's primary context is done. It makes no context for that. It
// fails while a stream of the context is being captured into a graph.
func (b *orderFloor) SynchronizeDevice(device int) error {
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
func (b *orderFloor) SynchronizeContext(context uintptr) error {
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
func (b *orderFloor) Idle(device int, s backends.Stream) (bool, error) {
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

// endStream keeps the pools from asking a stream any more.
func (b *orderFloor) endStream(s backends.Stream) {
	for _, d := range b.devices {
		if p := d.reused.Load(); p != nil {
			//mutate:remove the pool of plain memory is not told that a stream ends
			p.EndStream(s)
		}
		//mutate:replace a pool that can be paused is not told that a stream ends
		//mutate:with range d.tagged.all() => range d.tagged.all()[:0]
		for _, p := range d.tagged.all() {
			p.EndStream(s)
		}
	}
	b.streams.set(s, 0)
}

// finish waits for all work on a stream. A wait may report an earlier failure, so only a second wait says whether the
// work is over.
func (v *visit) finish(stream backends.Stream) error {
	err := v.b.call(v.b.driver.StreamSynchronize, v.b.native(stream))
	if err != nil {
		err = errors.Join(err, v.b.call(v.b.driver.StreamSynchronize, v.b.native(stream)))
	}
	return err
}

// captures reports whether the stream is, or may be, captured into a graph.
func (v *visit) captures(stream backends.Stream) bool {
	if v.b.driver.StreamIsCapturing == 0 {
		return true
	}
	return v.b.try(v.b.driver.StreamIsCapturing, v.b.native(stream), v.slot(0)) != success || int32(v.out[0]) != 0
}

// follow makes later work on a stream run after the work that another one holds now. Both are of d's primary context,
// which is entered.
func (v *visit) follow(d *device, stream, before backends.Stream) error {
	e, err := v.newEvent(d)
	if err != nil {
		return err
	}
	if err = v.b.call(v.b.driver.EventRecord, e, v.b.native(before)); err == nil {
		err = v.b.call(v.b.driver.StreamWaitEvent, v.b.native(stream), e, 0)
	}
	v.giveBack(d, e)
	return err
}
