package backendtest

import (
	"syscall"

	"hamr/backends"
)

// What runtimes are unlike CUDA in: several vendors' in one process, one that wants to be called on
// one thread, events that whoever has work done hands out.

// onThread runs a method's body, with the lock held, where the runtime wants to be called.
func (f *Fake) onThread(body func()) {
	locked := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		body()
	}
	if f.options.OneThread {
		f.worker.Do(locked)
	} else {
		locked()
	}
}

// checkThread notes a call on another thread than those before.
func (f *Fake) checkThread(call string) error {
	if !f.options.OneThread {
		return nil
	}
	switch call {
	case "Allocate", "Free", "Copy", "Fill":
	default:
		return nil
	}
	now := syscall.Gettid()
	if f.thread == 0 {
		f.thread = now
	}
	if now != f.thread {
		return f.violate(call, "called on thread %d, and before on %d", now, f.thread)
	}
	return nil
}

// platform is the number of the runtime that a device belongs to.
func (f *Fake) platform(device int) int { return device % f.options.Platforms }

// apart reports whether two blocks are of devices that know nothing of each other.
func (f *Fake) apart(a, b *block) bool {
	return a != nil && b != nil && f.platform(a.owner()) != f.platform(b.owner())
}

// copyThroughHost copies between two such devices, after what the stream holds.
func (f *Fake) copyThroughHost(to, from memory, s *fakeStream) error {
	f.finish(s)
	if err := s.takeError(); err != nil {
		return err
	}
	f.onBlock(to.block, "copy", func() {
		f.onBlock(from.block, "copy", func() { copy(to.bytes(), from.bytes()) })
	})
	return nil
}

// Reaches is true of managed memory of the same platform, and of what FakeOptions.Knows says.
func (f *Fake) Reaches(device int, at backends.Region) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Reaches", "device %d, %s", device, describe(at)); err != nil {
		return false, err
	}
	if err := f.checkDevice("Reaches", device); err != nil {
		return false, err
	}
	if at.Allocator.Backend() != f.Name() {
		return f.options.Knows != nil && f.options.Knows(device, at), nil
	}
	return at.Allocator.Kind() == backends.Managed && f.platform(device) == f.platform(max(at.Device, 0)), nil
}

// HostReaches says what FakeOptions.Fine does.
func (f *Fake) HostReaches(at backends.Region) bool {
	return f.options.Fine && at.Allocator.Backend() == f.Name()
}

// VendorEvent implements EventProducer: the event is its producer's own, in no table of the Fake's.
func (f *Fake) VendorEvent(device int, s backends.Stream) (handle uintptr, release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("VendorEvent", "device %d, stream %#x", device, s); err != nil {
		return 0, nil, err
	}
	stream, err := f.stream("VendorEvent", device, s)
	if err != nil {
		return 0, nil, err
	}
	p := &point{stream: stream}
	f.enqueue(stream, task{point: p})
	handle = uintptr(f.newHandle())
	f.produced[handle] = p
	return handle, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.produced, handle)
	}, nil
}

// AdoptEvent knows what VendorEvent has made, until that is released.
func (f *Fake) AdoptEvent(device int, handle uintptr) (backends.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("AdoptEvent", "device %d, event %#x", device, handle); err != nil {
		return 0, err
	}
	p, ok := f.produced[handle]
	if !ok || p.stream.device != device {
		return 0, f.violate("AdoptEvent", "%#x is no event of device %d", handle, device)
	}
	e := backends.Event(f.newHandle())
	f.events[e] = &fakeEvent{device: device, point: p}
	return e, nil
}
