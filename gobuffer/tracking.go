package gobuffer

// Of says which allocations are meant. The zero value means those of hamr itself on device 0 by no
// allocator: All means all.
type Of struct {
	Library Library // or AnyLibrary
	Backend string  // "" means any
	Device  int     // of the backend, or backends.HostDevice; AnyDevice means any
}

// AnyDevice is every device and the host, where allocations are chosen.
const AnyDevice = -2

// All are the allocations of all libraries on all devices and the host.
var All = Of{AnyLibrary, "", AnyDevice}

func (o Of) has(m *Memory) bool {
	return (o.Library == AnyLibrary || o.Library == m.library) && (o.Device == AnyDevice || o.Device == m.region.Device) &&
		(o.Backend == "" || o.Backend == m.backend.Name())
}

// Tracker counts what is allocated between Track and Stop, by all goroutines.
type Tracker struct {
	runtime *Runtime
	of      Of
	stopped bool
	tracked Tracked
}

// Tracked is what a Tracker has counted.
type Tracked struct {
	Allocated   int64 // bytes of the allocations since Track
	Allocations int64
	Freed       int64 // bytes that were given back since Track, whenever they were allocated
	// Peak is by how many bytes there were more in use at once than at Track, at most.
	Peak int64
}

// Track begins to count allocations.
func (r *Runtime) Track(of Of) (*Tracker, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if of.Backend != "" && !r.backends.Has(of.Backend) {
		_, err := r.Named(of.Backend)
		return nil, err
	}
	t := &Tracker{runtime: r, of: of}
	b := &r.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.listen(t)
	return t, nil
}

func (t *Tracker) come(m *Memory, size int) {
	if t.of.has(m) {
		c := &t.tracked
		c.Allocated += int64(size)
		c.Allocations++
		c.Peak = max(c.Peak, c.Allocated-c.Freed)
	}
}

func (t *Tracker) gone(m *Memory, size int) {
	if t.of.has(m) {
		t.tracked.Freed += int64(size)
	}
}

func (t *Tracker) grown(m *Memory, by int) { t.come(m, by) }

// Read returns what was counted so far.
func (t *Tracker) Read() Tracked {
	if t == nil || t.runtime == nil {
		return Tracked{}
	}
	b := &t.runtime.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return t.tracked
}

// Stop ends the counting, and returns what was counted; again it changes nothing.
func (t *Tracker) Stop() Tracked {
	if t == nil || t.runtime == nil {
		return Tracked{}
	}
	b := &t.runtime.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !t.stopped {
		t.stopped = true
		b.endListening(t)
	}
	return t.tracked
}
