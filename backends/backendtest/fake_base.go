package backendtest

import (
	"sync"
	"syscall"

	"hamr/backends"
	"hamr/backends/internal/worker"
)

// fakeBase is the lowest floor of a Fake: its options, and the book of its calls. Each floor above embeds the one
// below it, and uses nothing of those above. All floors share the lock.
type fakeBase struct {
	options FakeOptions

	mu         sync.Mutex
	probed     bool
	faults     []*fault
	violations []string
	calls      []string
	counts     map[string]int
	worker     worker.Worker // of OneThread
	thread     int           // its number; zero is none yet
}

// Name returns the name of the space it stands in for.
func (f *fakeBase) Name() string { return f.options.Space.String() }

// onThread runs a method's body, with the lock held, where the runtime wants to be called.
func (f *fakeBase) onThread(body func()) {
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
func (f *fakeBase) checkThread(call string) error {
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
func (f *fakeBase) platform(device int) int { return device % f.options.Platforms }

// apart reports whether two blocks are of devices that know nothing of each other.
func (f *fakeBase) apart(a, b *block) bool {
	return a != nil && b != nil && f.platform(a.owner()) != f.platform(b.owner())
}

// HostReaches says what FakeOptions.Fine does.
func (f *fakeBase) HostReaches(at backends.Region) bool {
	return f.options.Fine && at.Allocator.Backend() == f.Name()
}

func (f *fakeBase) checkDevice(call string, device int) error {
	if device < 0 || device >= f.options.Devices {
		return f.violate(call, "no device %d: wrong device", device)
	}
	return nil
}

// FreeWaits says what FakeOptions.FreeWaits does.
func (f *fakeBase) FreeWaits(a backends.Allocator) bool {
	return f.options.FreeWaits && !f.inOrder(a) && !f.Reuses(a)
}

// Reuses says what FakeOptions.Reuses does.
func (f *fakeBase) Reuses(a backends.Allocator) bool {
	return f.options.Reuses && (a.Kind() == backends.DeviceOnly || a.Kind() == backends.Pinned) && !a.Ordered()
}

func (f *fakeBase) inOrder(a backends.Allocator) bool {
	return a.Ordered() || (f.Reuses(a) && a.Kind() != backends.Pinned)
}

// Grows says what FakeOptions.Grows does.
func (f *fakeBase) Grows(a backends.Allocator) bool {
	return f.options.Grows > 0 && !f.options.Mapped && a.Backend() == f.Name() &&
		a.Kind() == backends.DeviceOnly && !f.inOrder(a)
}
