package cuda

import (
	"sync"

	"hamr/backends"
)

// keptStreams are those of somebody else's that stay until DropStream.
type keptStreams struct {
	mu   sync.Mutex
	here map[backends.Stream]bool
}

// KeepStream asks the driver once for the context of a stream that is not the backend's own.
func (b *Backend) KeepStream(device int, s backends.Stream) error {
	if _, known := b.streams.contextOf(s); known || s <= perThreadStream || s == backends.EveryStream {
		return nil
	}
	v, err := b.enter(device, s)
	if err != nil {
		return err
	}
	context := v.context
	v.leave()
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	if b.kept.here == nil {
		b.kept.here = map[backends.Stream]bool{}
	}
	b.kept.here[s] = true
	b.streams.set(s, context)
	return nil
}

// Kept is true of the default stream and the backend's own, too.
func (b *Backend) Kept(s backends.Stream) bool {
	_, known := b.streams.contextOf(s)
	return known || shared(s) == legacyStream
}

// DropStream makes the pools of all devices do without a stream.
func (b *Backend) DropStream(_ int, s backends.Stream) error {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	if b.kept.here[s] {
		delete(b.kept.here, s)
		b.endStream(s)
	}
	return nil
}

// endStream keeps the pools from asking a stream any more.
func (b *Backend) endStream(s backends.Stream) {
	for _, d := range b.devices {
		if p := d.reused.Load(); p != nil {
			//mutate:remove the pool of plain memory is not told that a stream ends
			p.EndStream(s)
		}
	}
	b.streams.set(s, 0)
}

// Collect makes a stream for each device that nothing but waits is enqueued on.
func (b *Backend) Collect(number int, others ...backends.Stream) (backends.Stream, error) {
	d, err := b.device(number)
	if err != nil {
		return 0, err
	}
	memory := &plainMemory{b, d}
	for _, s := range others {
		if err := memory.captured(s); err != nil {
			return 0, err
		}
	}
	own, err := b.collecting(d)
	if err != nil {
		return 0, err
	}
	for _, s := range others {
		e, err := memory.Record(s)
		if err != nil {
			return 0, err
		}
		err = b.Wait(number, own, e)
		memory.Destroy(e)
		if err != nil {
			return 0, err
		}
	}
	return own, nil
}

func (b *Backend) collecting(d *device) (backends.Stream, error) {
	d.mu.Lock()
	own := d.collecting
	d.mu.Unlock()
	if own != 0 {
		return own, nil
	}
	made, err := b.NewStream(d.number)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	if own = d.collecting; own == 0 {
		own, d.collecting = made, made
	}
	d.mu.Unlock()
	if own != made {
		return own, b.DestroyStream(d.number, made)
	}
	return own, nil
}
