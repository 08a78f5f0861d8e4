package backendtest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"time"

	"hamr/backends"
	"hamr/backends/internal/worker"
)

// FakeOptions says how a Fake behaves. The zero value is one CUDA-like device
// of 1 GiB.
type FakeOptions struct {
	Space   backends.Space // whose allocators to serve; zero means SpaceCUDA
	Devices int            // zero means one
	Memory  int64          // bytes of each device; zero means 1 GiB
	// Strict makes every copy late. Otherwise copies with pageable memory act as
	// CUDA's do: into it they are complete at return, and out of it the source
	// has been read at return.
	Strict bool
	// Manual leaves late work undone until somebody waits or polls for it, so
	// that a missing wait gives wrong data at every run. Otherwise it is done
	// after a random time of up to MaxDelay an item, zero meaning 1 ms.
	Manual   bool
	MaxDelay time.Duration
	// Still has Manual's work wait for who waits: to poll does not help.
	Still bool
	// Synchronous does all work at once, like a runtime without streams.
	Synchronous bool
	// FreeWaits makes Free of memory that is not stream-ordered wait for the
	// device first, as cuMemFree does in practice. Otherwise work that has yet to
	// run on freed memory is a violation.
	FreeWaits bool
	// Reuses makes device memory of every allocator stream-ordered, and work that has yet to
	// run on page-locked memory when it is freed a violation.
	Reuses bool
	// Grows is for how many bytes each allocation of device memory that is not
	// stream-ordered has addresses: up to there it grows where it is. Zero: none grows.
	Grows int
	// LateMemory makes it a violation to use stream-ordered memory before the stream that
	// it was taken on has come to it, as with CUDA's pools.
	LateMemory bool
	// ReuseHandles gives the handles of destroyed streams and events to new ones at once,
	// so that who still means the old one by it means another.
	ReuseHandles bool
	// NoPeers keeps devices from reaching each other.
	NoPeers bool
	// NoConvert makes Convert refuse everything. Otherwise it rearranges elements,
	// but converts none.
	NoConvert bool
	// Mapped lets the host use device memory while it is mapped: a copy of it, which
	// comes back when it is unmapped. Work of the device's meanwhile is a violation.
	Mapped bool
	// Fine has device memory where the host finds it, at any time, though facts do not say so.
	Fine bool
	// Knows reports whether a device reaches another runtime's memory, as a driver that the other
	// one takes its memory from can tell. Nil: none does.
	Knows func(device int, at backends.Region) bool
	// Platforms is how many vendors' runtimes the devices belong to in turn: those of two know
	// nothing of each other. Zero means one.
	Platforms int
	// OneThread makes it a violation that memory is taken, given back, copied or filled on more
	// than one thread. It needs Synchronous.
	OneThread bool
	// NoSharing keeps memory from being shared by descriptor.
	NoSharing bool
	// Identities are the devices' UUIDs; nil makes them up from name and number.
	Identities []backends.UUID
	// Unavailable, when set, is why Probe fails.
	Unavailable string
}

// Fake is a device backend without a device. Its device memory has addresses
// that no processor accepts; its streams run late and out of step; it records
// every misuse as a violation, and fails where it is told to. Work on a stream
// that waits for no other keeps its order; stream zero of a device is a stream
// like any other, and so is the one called 2, which stands for the calling thread's, of
// all threads. It implements Backend, Streams, Timer, DeviceSynchronizer, Converter, Mapper, Locator,
// Peers, MemoryReporter, Describer, Identified, Contexts, Reacher, HostReacher,
// EventAdopter, Reuser, Grower, Sharer, Launcher and Device, and is safe for concurrent use.
type Fake struct {
	options FakeOptions

	mu         sync.Mutex
	probed     bool
	blocks     []*block // by base
	freed      int      // how many of blocks
	used       []int64  // bytes, by device
	defaults   []*fakeStream
	threads    []*fakeStream // the threads' own
	followers  []*fakeStream // what threads is resolved to
	streams    map[backends.Stream]*fakeStream
	busy       []*fakeStream // with work to do
	working    bool          // a goroutine is doing late work
	executing  bool          // a kernel is running
	events     map[backends.Event]*fakeEvent
	retired    []uint64 // handles to be used again
	faults     []*fault
	violations []string
	calls      []string
	counts     map[string]int
	elsewhere  map[backends.Address]bool // blocks of other contexts, by base
	settled    int                       // what SynchronizeContext has waited for
	produced   map[uintptr]*point        // by VendorEvent
	modules    fakeModules
	worker     worker.Worker // of OneThread
	thread     int           // its number; zero is none yet
}

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
	f := &Fake{
		options: o,
		used:    make([]int64, o.Devices),
		streams: map[backends.Stream]*fakeStream{},
		events:  map[backends.Event]*fakeEvent{},
		counts:  map[string]int{},

		elsewhere: map[backends.Address]bool{},
		produced:  map[uintptr]*point{},
	}
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

// Name returns the name of the space it stands in for.
func (f *Fake) Name() string { return f.options.Space.String() }

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

// FreeWaits says what FakeOptions.FreeWaits does.
func (f *Fake) FreeWaits(a backends.Allocator) bool {
	return f.options.FreeWaits && !f.inOrder(a) && !f.Reuses(a)
}

// Reuses says what FakeOptions.Reuses does.
func (f *Fake) Reuses(a backends.Allocator) bool {
	return f.options.Reuses && (a.Kind() == backends.DeviceOnly || a.Kind() == backends.Pinned) && !a.Ordered()
}

func (f *Fake) inOrder(a backends.Allocator) bool {
	return a.Ordered() || (f.Reuses(a) && a.Kind() != backends.Pinned)
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

func (f *Fake) delay() time.Duration { return rand.N(f.options.MaxDelay) }
