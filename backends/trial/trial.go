//go:build trial

package trial

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"hamr/backends"
	"hamr/backends/internal/setting"
	"hamr/backends/internal/staging"
)

// The settings, as names of environment variables.
const (
	// DevicesSetting is how many devices there are: two unless it says otherwise.
	DevicesSetting = "HAMR_TRIAL_DEVICES"
	// ThreadsSetting is how many threads do ready work, sooner or later. With none, the default, work is done only when
	// somebody waits or polls.
	ThreadsSetting = "HAMR_TRIAL_THREADS"
)

const (
	name   = "trial"
	memory = 1 << 30 // bytes of each device
)

// Backend implements backends.Backend, Streams, DeviceSynchronizer, Mapper, NativeHandles,
// Locator, MemoryReporter, Describer, Identified, Stager and Trimmer for the allocators Trial and TrialSVM. All methods
// are safe for concurrent use.
type Backend struct {
	lookup func(string) string

	mu      sync.Mutex
	changed sync.Cond // work is done, or there is more
	probed  bool
	devices []*device
	blocks  []*block // by base, those that were freed included
	queues  map[backends.Stream]*queue
	events  map[backends.Event]*event
	undone  []*item // in the order of their enqueuing
	random  *rand.Rand
	threads int

	staging staging.Engine
	arenas  []*arena
	marks   map[uintptr]*item // of staged copies
	marked  uintptr           // how many there ever were

	injected   []*fault
	counts     map[string]int
	violations []string
}

type device struct {
	number int
	used   int
	queue  *queue // for stream zero
}

// New returns the backend. Probe reads the settings through lookup.
func New(lookup func(string) string) *Backend {
	b := &Backend{
		lookup: lookup,
		queues: map[backends.Stream]*queue{},
		events: map[backends.Event]*event{},
		counts: map[string]int{},
		marks:  map[uintptr]*item{},
		random: rand.New(rand.NewPCG(1, 2)),
	}
	b.changed.L = &b.mu
	return b
}

// Name returns "trial".
func (*Backend) Name() string { return name }

// Probe makes the devices at its first call.
func (b *Backend) Probe() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.probed {
		return nil
	}
	count, err := b.setting(DevicesSetting, 1, 2)
	if err == nil {
		b.threads, err = b.setting(ThreadsSetting, 0, 0)
	}
	if err == nil {
		err = b.staging.Configure(name, b.lookup, b.model)
	}
	if err != nil {
		return &backends.UnavailableError{Backend: name, Reason: err.Error()}
	}
	b.probed = true
	for i := range count {
		b.devices = append(b.devices, &device{number: i, queue: b.newQueue(i)})
	}
	for range b.threads {
		go b.work()
	}
	return nil
}

func (b *Backend) setting(name string, least, usual int) (int, error) {
	n, set, err := setting.Number(b.lookup, name, "a number", uint64(least), math.MaxInt)
	if !set {
		return usual, nil
	}
	return int(n), err
}

// DeviceCount returns what DevicesSetting says.
func (b *Backend) DeviceCount() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.devices), b.enter("DeviceCount")
}

// Allocate returns memory full of garbage. If it should be zero, it is so when the stream has reached it.
func (b *Backend) Allocate(r backends.Request) (backends.Address, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Allocate"); err != nil {
		return 0, err
	}
	if r.Allocator.Backend() != name {
		return 0, b.violate("Allocate", "allocator %s is not the trial's", r.Allocator)
	}
	d, err := b.device("Allocate", r.Device)
	if err != nil {
		return 0, err
	}
	q, err := b.queueFor("Allocate", r.Stream, r.Device)
	if err != nil {
		return 0, err
	}
	if r.Size > memory-d.used {
		return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size,
			Detail: "TRIAL_OUT_OF_MEMORY (2)"}
	}
	k, err := b.newBlock(r)
	if err != nil {
		return 0, err
	}
	d.used += r.Size
	if r.Zero {
		b.enqueueOrdered(q, "zeroing", []part{k.whole()}, func() { clear(k.data) })
	}
	return k.base, nil
}

// Free takes memory away at once. Work that still uses it is a misuse.
func (b *Backend) Free(at backends.Region, size int, s backends.Stream) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Free"); err != nil {
		return err
	}
	k := b.find(at.Address)
	switch {
	case k == nil || k.freed || k.base != at.Address || k.allocator != at.Allocator || k.device != at.Device ||
		(size != 0 && size != k.size):
		return b.violate("Free", "%s is no allocation of %d bytes", describe(at), size)
	case len(k.mapped) > 0:
		return b.violate("Free", "%s is mapped", describe(at))
	}
	if _, err := b.queueFor("Free", s, at.Device); err != nil {
		return err
	}
	if i := b.pendingOn(k.whole()); i != nil {
		return b.violate("Free", "a %s is still to run on %s", i.what, describe(at))
	}
	b.devices[k.device].used -= k.size
	return k.release()
}

// Copy enqueues a copy, or several where ordinary host memory is staged. Otherwise both sides are used when it runs,
// never before.
func (b *Backend) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	b.mu.Lock()
	err := b.enter("Copy")
	b.mu.Unlock()
	if err != nil {
		return backends.Complete, err
	}
	if left, err := b.stage(dst, src, size, s); !errors.Is(err, errors.ErrUnsupported) {
		return left, err
	}
	return b.copy(dst, src, size, s)
}

func (b *Backend) copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to, err := b.part("Copy", dst, size)
	if err != nil {
		return backends.Complete, err
	}
	from, err := b.part("Copy", src, size)
	if err != nil {
		return backends.Complete, err
	}
	on := dst
	switch {
	case to.block == nil && from.block == nil:
		return backends.Complete, b.violate("Copy", "neither %s nor %s is the trial's", describe(dst), describe(src))
	case to.block == nil:
		on = src
	case to.block == from.block && to.from < from.from+size && from.from < to.from+size:
		return backends.Complete, b.violate("Copy", "%s and %s overlap", describe(dst), describe(src))
	}
	q, err := b.queueFor("Copy", s, on.Device)
	if err != nil {
		return backends.Complete, err
	}
	b.enqueueOrdered(q, "copy", []part{to, from}, func() { copy(to.bytes(), from.bytes()) })
	return backends.Reading | backends.Writing, nil
}

// Fill enqueues a fill.
func (b *Backend) Fill(dst backends.Region, pattern []byte, count int, s backends.Stream) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("Fill"); err != nil {
		return err
	}
	if len(pattern) < 1 || len(pattern) > 16 {
		return b.violate("Fill", "a pattern of %d bytes", len(pattern))
	}
	to, err := b.part("Fill", dst, len(pattern)*count)
	if err != nil {
		return err
	}
	if to.block == nil {
		return b.violate("Fill", "%s is not the trial's", describe(dst))
	}
	q, err := b.queueFor("Fill", s, dst.Device)
	if err != nil {
		return err
	}
	image := bytes.Repeat(pattern, count)
	b.enqueueOrdered(q, "fill", []part{to}, func() { copy(to.bytes(), image) })
	return nil
}

// MemoryInfo counts what was allocated.
func (b *Backend) MemoryInfo(number int) (free, total int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, err := b.device("MemoryInfo", number)
	if err != nil {
		return 0, 0, err
	}
	return int64(memory - d.used), memory, nil
}

// Identity makes up a UUID.
func (b *Backend) Identity(number int) (id backends.UUID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err = b.device("Identity", number)
	copy(id[:], fmt.Sprintf("trial device %03d", number))
	return id, err
}

// Describe returns the facts name, uuid and violations: what was misused so far.
func (b *Backend) Describe(number int) ([][2]string, error) {
	id, err := b.Identity(number)
	if err != nil {
		return nil, err
	}
	return [][2]string{
		{"name", fmt.Sprintf("Trial device %d", number)},
		{"uuid", id.String()},
		{"violations", fmt.Sprint(b.Violations())},
	}, nil
}

func (b *Backend) device(call string, number int) (*device, error) {
	if number < 0 || number >= len(b.devices) {
		return nil, b.violate(call, "there is no device %d", number)
	}
	return b.devices[number], nil
}

func describe(r backends.Region) string {
	return fmt.Sprintf("%s:%d@%#x", r.Allocator, r.Device, uintptr(r.Address))
}
