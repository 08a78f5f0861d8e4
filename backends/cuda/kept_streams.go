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
func (b *Backend) KeepStream(device int, s backends.Stream) (backends.Stream, error) {
	if s = shared(s); s == perThreadStream {
		return backends.EveryStream, nil
	}
	if _, known := b.streams.contextOf(s); known || s == legacyStream || s == backends.EveryStream {
		return s, nil
	}
	v, err := b.enter(device, s)
	if err != nil {
		return 0, err
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
	return s, nil
}

// DropStream makes the pools of all devices do without a stream.
func (b *Backend) DropStream(_ int, s backends.Stream) error {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	if !b.kept.here[s] {
		return nil
	}
	delete(b.kept.here, s)
	b.endStream(s)
	return nil
}

// endStream keeps the pools from asking a stream any more.
func (b *Backend) endStream(s backends.Stream) {
	for _, d := range b.devices {
		if p := d.reused.Load(); p != nil {
			p.EndStream(s)
		}
	}
	b.streams.set(s, 0)
}
