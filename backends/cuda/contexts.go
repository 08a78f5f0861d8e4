package cuda

import (
	"maps"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// contextFloor is the floor of devices and contexts: it knows where threads work, and what a stream's context is.
type contextFloor struct {
	callFloor

	// Set by Probe.
	devices  []*device
	ready    atomic.Bool      // all of these are set, and those of callFloor
	contexts []atomic.Uintptr // primary ones, by device; zero until they are retained

	streams ownStreams
}

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

// DeviceCount returns how many devices the driver shows to this process.
func (b *contextFloor) DeviceCount() (int, error) { return len(b.devices), nil }
