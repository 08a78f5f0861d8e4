package cuda

import "hamr/backends"

// KeepStream asks the driver once for the context of a stream that is not the backend's own.
func (b *orderFloor) KeepStream(device int, s backends.Stream) error {
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
func (b *orderFloor) Kept(s backends.Stream) bool {
	_, known := b.streams.contextOf(s)
	return known || shared(s) == legacyStream
}

// DropStream keeps the pools of all devices from using a stream any more.
func (b *orderFloor) DropStream(_ int, s backends.Stream) error {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	if b.kept.here[s] {
		delete(b.kept.here, s)
		b.endStream(s)
	}
	return nil
}
