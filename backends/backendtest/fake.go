package backendtest

import (
	"bytes"
	"testing"
	"time"

	"hamr/backends"
)

// Fake is a device backend without a device. Its device memory has addresses
// that no processor accepts; its streams run late and out of step; it records
// every misuse as a violation, and fails where it is told to. Work on a stream
// that waits for no other keeps its order; stream zero of a device is a stream
// like any other, and so is the one called 2, which stands for the calling thread's, of
// all threads. It implements Backend, Streams, Timer, DeviceSynchronizer, Converter, Mapper, Locator,
// Peers, MemoryReporter, Describer, Identified, Contexts, Reacher, HostReacher,
// EventAdopter, Reuser, Grower, Sharer, Launcher and Device, and is safe for concurrent use.
type Fake struct{ fakeMemory }

// NewFake returns a device backend for tests.
func NewFake(o FakeOptions) *Fake {
	if o.Space == backends.SpaceHost {
		o.Space = backends.SpaceCUDA
	}
	if o.Devices == 0 {
		o.Devices = 1
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.Platforms == 0 {
		o.Platforms = 1
	}
	if o.OneThread && !o.Synchronous {
		panic("backendtest: a Fake that is called on one thread must be Synchronous")
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = time.Millisecond
	}
	f := new(Fake)
	f.options = o
	f.used = make([]int64, o.Devices)
	f.streams = map[backends.Stream]*fakeStream{}
	f.events = map[backends.Event]*fakeEvent{}
	f.counts = map[string]int{}
	f.elsewhere = map[backends.Address]bool{}
	f.produced = map[uintptr]*point{}
	for device := range o.Devices {
		f.defaults = append(f.defaults, f.newStream(device))
		f.threads = append(f.threads, f.newStream(device))
		f.followers = append(f.followers, f.newStream(device))
	}
	return f
}

// WithoutStreams returns the same device as a backend that implements nothing
// optional. It needs FakeOptions.Synchronous.
func (f *Fake) WithoutStreams() backends.Backend {
	if !f.options.Synchronous {
		panic("backendtest: a Fake without streams must be Synchronous")
	}
	return struct {
		backends.Backend
		Counter
	}{f, f}
}

// Probe fails when FakeOptions.Unavailable says so.
func (f *Fake) Probe() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probed = true
	if err := f.enter("Probe", ""); err != nil {
		return err
	}
	if f.options.Unavailable != "" {
		return &backends.UnavailableError{Backend: f.Name(), Tried: []string{"libfake.so"}, Reason: f.options.Unavailable}
	}
	return nil
}

// DeviceCount returns FakeOptions.Devices.
func (f *Fake) DeviceCount() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("DeviceCount", ""); err != nil {
		return 0, err
	}
	return f.options.Devices, nil
}

// Allocate fills new memory with garbage. Zeroing device and managed memory is
// work on the stream.
func (f *Fake) Allocate(r backends.Request) (at backends.Address, err error) {
	f.onThread(func() { at, err = f.allocate(r) })
	return at, err
}

func (f *Fake) allocate(r backends.Request) (backends.Address, error) {
	if err := f.enter("Allocate", "%s, device %d, %d bytes, stream %#x, zero %v", r.Allocator, r.Device, r.Size,
		r.Stream, r.Zero); err != nil {
		return 0, err
	}
	if r.Allocator.Backend() != f.Name() {
		return 0, f.violate("Allocate", "allocator %s is not of %s", r.Allocator, f.Name())
	}
	device, err := f.deviceOf("Allocate", r.Allocator, r.Device)
	if err != nil {
		return 0, err
	}
	stream, err := f.streamFor("Allocate", r.Stream, memory{block: &block{allocator: r.Allocator, device: device}})
	if err != nil {
		return 0, err
	}
	b, err := f.newBlock(r, device)
	if err != nil {
		return 0, err
	}
	if f.options.LateMemory && f.inOrder(r.Allocator) {
		b.coming = true
		f.enqueue(stream, task{arrives: b})
	}
	if r.Zero && b.kind() == backends.Pinned {
		clear(b.data)
	} else if r.Zero {
		f.enqueue(stream, task{run: func() { f.onBlock(b, "zeroing", func() { clear(b.data) }) }})
	}
	return b.base, nil
}

// Free gives memory back: in stream order where the allocator says so, else at once.
func (f *Fake) Free(at backends.Region, size int, s backends.Stream) (err error) {
	f.onThread(func() { err = f.free(at, size, s) })
	return err
}

func (f *Fake) free(at backends.Region, size int, s backends.Stream) error {
	if err := f.enter("Free", "%s, %d bytes, stream %#x", describe(at), size, s); err != nil {
		return err
	}
	b, err := f.blockToFree(at, size)
	if err != nil {
		return err
	}
	stream, err := f.streamFor("Free", s, memory{block: b})
	if err != nil {
		return err
	}
	if len(b.mapped) > 0 {
		return f.violate("Free", "free of %s, which the host has mapped", describe(at))
	}
	b.freeing = true
	if f.inOrder(b.allocator) {
		f.enqueue(stream, task{run: func() { f.release(b) }})
		return nil
	}
	if f.FreeWaits(b.allocator) {
		f.finishDevice(b.owner())
	}
	f.release(b)
	return nil
}

// Peek returns a copy of memory as it is now, with no regard to pending work.
func (f *Fake) Peek(at backends.Address, size int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.truth(at, size))
}

// Poke writes memory now, with no regard to pending work.
func (f *Fake) Poke(at backends.Address, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	copy(f.truth(at, len(data)), data)
}

// Locate knows every live allocation, at any offset in it.
func (f *Fake) Locate(at backends.Address) (backends.Location, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Locate", "%#x", at); err != nil {
		return backends.Location{}, err
	}
	if b := f.find(at); b != nil && !b.freeing {
		found := backends.Location{Region: backends.Region{Address: at, Allocator: b.allocator, Device: b.device},
			Base: b.base, Size: b.size}
		if b.kind() == backends.DeviceOnly {
			found.Context = f.context(b.owner())
			if f.elsewhere[b.base] {
				found.Context++
			}
		}
		return found, nil
	}
	return backends.Location{Region: backends.Region{Address: at, Allocator: backends.None,
		Device: backends.HostDevice}}, nil
}

// CanAccess is true of two different devices unless FakeOptions.NoPeers is set.
func (f *Fake) CanAccess(from, to int) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("CanAccess", "%d, %d", from, to); err != nil {
		return false, err
	}
	for _, device := range []int{from, to} {
		if err := f.checkDevice("CanAccess", device); err != nil {
			return false, err
		}
	}
	return from != to && !f.options.NoPeers && f.platform(from) == f.platform(to), nil
}

// Enable succeeds where CanAccess is true.
func (f *Fake) Enable(from, to int) error { return f.checkPeers("Enable", from, to) }

// Disable succeeds where Enable does.
func (f *Fake) Disable(from, to int) error { return f.checkPeers("Disable", from, to) }

func (f *Fake) checkPeers(call string, from, to int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter(call, "%d, %d", from, to); err != nil {
		return err
	}
	for _, device := range []int{from, to} {
		if err := f.checkDevice(call, device); err != nil {
			return err
		}
	}
	if from == to || f.options.NoPeers || f.platform(from) != f.platform(to) {
		return f.violate(call, "device %d cannot access device %d", from, to)
	}
	return nil
}

// MemoryInfo counts memory until its stream-ordered release has run.
func (f *Fake) MemoryInfo(device int) (free, total int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("MemoryInfo", "%d", device); err != nil {
		return 0, 0, err
	}
	if err := f.checkDevice("MemoryInfo", device); err != nil {
		return 0, 0, err
	}
	return f.options.Memory - f.used[device], f.options.Memory, nil
}

// Live counts what was allocated and not freed.
func (f *Fake) Live() (allocations, bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.blocks {
		if !b.freeing {
			allocations++
			bytes += b.size
		}
	}
	return allocations, bytes
}

// LiveHandles counts streams, without the default ones, and events.
func (f *Fake) LiveHandles() (streams, events int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams) - len(f.defaults) - len(f.threads) - len(f.followers), len(f.events)
}

// Finish does all pending work.
func (f *Fake) Finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.busy) > 0 {
		f.finish(f.busy[0])
	}
}

// AssertClean does all pending work, then fails t for each violation and for
// memory that was not freed. Streams and events may be pooled: LiveHandles
// counts them.
func (f *Fake) AssertClean(t testing.TB) {
	t.Helper()
	f.Finish()
	for _, v := range f.Violations() {
		t.Errorf("fake %s: %s", f.Name(), v)
	}
	if allocations, bytes := f.Live(); allocations != 0 {
		t.Errorf("fake %s: leak of %d allocations, %d bytes", f.Name(), allocations, bytes)
	}
}
