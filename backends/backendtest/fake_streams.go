package backendtest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"hamr/backends"
)

// nextHandle numbers the streams and events of all fakes.
var nextHandle atomic.Uint64

const (
	firstHandle = 0xFA0000 // far from the drivers' special streams

	legacyStream    backends.Stream = 1
	perThreadStream backends.Stream = 2
)

// fakeStream is a queue of work that has yet to run.
type fakeStream struct {
	handle backends.Stream
	device int
	queue  []task
	err    error // of work that failed late, until somebody waits
}

// task is one item of work; any of its fields may be zero.
type task struct {
	after   *point // runs first
	arrives *block // may be used then
	run     func()
	point   *point // is reached then
}

// point is a place in a stream's work.
type point struct {
	stream  *fakeStream
	done    bool
	reached time.Time
}

// fakeOrder is the floor of streams and events.
type fakeOrder struct {
	fakeBase

	defaults  []*fakeStream
	threads   []*fakeStream // the threads' own
	followers []*fakeStream // what threads is resolved to
	streams   map[backends.Stream]*fakeStream
	busy      []*fakeStream // with work to do
	working   bool          // a goroutine is doing late work
	events    map[backends.Event]*fakeEvent
	retired   []uint64           // handles to be used again
	produced  map[uintptr]*point // by VendorEvent
}

func (s *fakeStream) takeError() error {
	err := s.err
	s.err = nil
	return err
}

func (f *fakeOrder) newHandle() uint64 {
	if n := len(f.retired); n > 0 {
		handle := f.retired[n-1]
		f.retired = f.retired[:n-1]
		return handle
	}
	return firstHandle + nextHandle.Add(1)
}

func (f *fakeOrder) retire(handle uint64) {
	if f.options.ReuseHandles {
		f.retired = append(f.retired, handle)
	}
}

func (f *fakeOrder) newStream(device int) *fakeStream {
	s := &fakeStream{handle: backends.Stream(f.newHandle()), device: device}
	f.streams[s.handle] = s
	return s
}

func (f *fakeOrder) enqueue(s *fakeStream, t task) {
	if len(s.queue) == 0 {
		f.busy = append(f.busy, s)
	}
	s.queue = append(s.queue, t)
	switch {
	case f.options.Synchronous:
		f.step(s)
	case !f.options.Manual && !f.working:
		f.working = true
		go f.workLate()
	}
}

// step does the first item of s. Points are waited for only by work that was
// queued after them, so the recursion ends.
func (f *fakeOrder) step(s *fakeStream) {
	t := s.queue[0]
	if t.after != nil {
		f.reach(t.after)
	}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
		f.busy = slices.DeleteFunc(f.busy, func(b *fakeStream) bool { return b == s })
	}
	if t.arrives != nil {
		t.arrives.coming = false
	}
	if t.run != nil {
		if err := f.injected("Execute"); err != nil {
			s.err = err
		} else {
			t.run()
		}
	}
	if t.point != nil {
		t.point.done, t.point.reached = true, time.Now()
	}
}

// follow makes later work on s run after what before holds now.
func (f *fakeOrder) follow(s, before *fakeStream) {
	if len(before.queue) == 0 {
		return
	}
	now := &point{stream: before}
	f.enqueue(before, task{point: now})
	f.enqueue(s, task{after: now})
}

func (f *fakeOrder) reach(p *point) {
	for !p.done {
		f.step(p.stream)
	}
}

func (f *fakeOrder) finish(s *fakeStream) {
	for len(s.queue) > 0 {
		f.step(s)
	}
}

func (f *fakeOrder) finishDevice(device int) {
	for _, s := range slices.Clone(f.busy) {
		if s.device == device {
			f.finish(s)
		}
	}
}

// workLate does pending work in random order and ends when there is none, so
// that a Fake needs no closing.
func (f *fakeOrder) workLate() {
	for {
		time.Sleep(f.delay())
		f.mu.Lock()
		if len(f.busy) == 0 {
			f.working = false
			f.mu.Unlock()
			return
		}
		f.step(f.busy[rand.IntN(len(f.busy))])
		f.mu.Unlock()
	}
}

// stream finds a stream that must be of device.
func (f *fakeOrder) stream(call string, device int, s backends.Stream) (*fakeStream, error) {
	if err := f.checkDevice(call, device); err != nil {
		return nil, err
	}
	switch s {
	case 0, legacyStream:
		return f.defaults[device], nil
	case perThreadStream:
		return f.threads[device], nil
	}
	found, ok := f.streams[s]
	if !ok {
		return nil, f.violate(call, "unknown stream %#x", s)
	}
	if found.device != device {
		return nil, f.violate(call, "stream %#x of device %d used for device %d: wrong device", s, found.device, device)
	}
	return found, nil
}

// streamFor finds a stream that must be of a device that owns one of list;
// pinned memory goes with any.
func (f *fakeOrder) streamFor(call string, s backends.Stream, list ...memory) (*fakeStream, error) {
	named, known := f.streams[s]
	var owner *block
	for _, m := range list {
		if m.block == nil {
			continue
		}
		if known && m.block.owner() == named.device {
			return named, nil
		}
		if owner == nil || owner.kind() == backends.Pinned {
			owner = m.block
		}
	}
	if known && owner.kind() == backends.Pinned {
		return named, nil
	}
	return f.stream(call, owner.owner(), s)
}

// Resolve returns the default stream of device for zero and 1, and for 2 a stream that runs after what the threads'
// own holds now.
func (f *fakeOrder) Resolve(device int, s backends.Stream) (backends.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Resolve", "device %d, stream %#x", device, s); err != nil {
		return 0, err
	}
	found, err := f.stream("Resolve", device, s)
	if err != nil {
		return 0, err
	}
	if s == perThreadStream {
		f.follow(f.followers[device], found)
		found = f.followers[device]
	}
	return found.handle, nil
}

// StreamDevice knows zero, 1 and 2 as streams of every device.
func (f *fakeOrder) StreamDevice(s backends.Stream) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("StreamDevice", "%#x", s); err != nil {
		return 0, err
	}
	if s <= perThreadStream {
		return backends.HostDevice, nil
	}
	found, ok := f.streams[s]
	if !ok {
		return 0, f.violate("StreamDevice", "unknown stream %#x", s)
	}
	return found.device, nil
}

// NewStream returns a stream that runs out of step with all others.
func (f *fakeOrder) NewStream(device int) (backends.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("NewStream", "device %d", device); err != nil {
		return 0, err
	}
	if err := f.checkDevice("NewStream", device); err != nil {
		return 0, err
	}
	return f.newStream(device).handle, nil
}

// DestroyStream returns at once; work on the stream is still done, late.
func (f *fakeOrder) DestroyStream(device int, s backends.Stream) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("DestroyStream", "device %d, stream %#x", device, s); err != nil {
		return err
	}
	found, err := f.stream("DestroyStream", device, s)
	if err != nil {
		return err
	}
	if found == f.defaults[device] || found == f.threads[device] || found == f.followers[device] {
		return f.violate("DestroyStream", "the default stream of device %d", device)
	}
	delete(f.streams, s)
	f.retire(uint64(s))
	return nil
}

// Synchronize does the work on s, and returns the error of work that failed.
func (f *fakeOrder) Synchronize(device int, s backends.Stream) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Synchronize", "device %d, stream %#x", device, s); err != nil {
		return err
	}
	found, err := f.stream("Synchronize", device, s)
	if err != nil {
		return err
	}
	f.finish(found)
	return found.takeError()
}

// SynchronizeDevice does all work of device, and returns the errors of work that failed.
func (f *fakeOrder) SynchronizeDevice(device int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("SynchronizeDevice", "device %d", device); err != nil {
		return err
	}
	if err := f.checkDevice("SynchronizeDevice", device); err != nil {
		return err
	}
	f.finishDevice(device)
	var failed []error
	for _, s := range f.streams {
		if s.device == device {
			failed = append(failed, s.takeError())
		}
	}
	return errors.Join(failed...)
}

// Idle does one item when FakeOptions.Manual is set, so that polling ends.
func (f *fakeOrder) Idle(device int, s backends.Stream) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Idle", "device %d, stream %#x", device, s); err != nil {
		return false, err
	}
	found, err := f.stream("Idle", device, s)
	if err != nil {
		return false, err
	}
	if len(found.queue) == 0 {
		return true, found.takeError()
	}
	if f.options.Manual && !f.options.Still {
		f.step(found)
	}
	return false, nil
}

func (f *fakeOrder) delay() time.Duration { return rand.N(f.options.MaxDelay) }
