package cuda

import (
	"math"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

// The values of PoolSetting.
const (
	withoutPool = "0"
	checkedPool = "check"
)

// freedByte fills memory that was given back, with PoolSetting "check".
const freedByte = 0xDB

// Reuses returns true for plain device memory and page-locked memory, unless PoolSetting says otherwise.
func (b *poolFloor) Reuses(a backends.Allocator) bool {
	return (a == b.dialect.Allocators.Plain || a == b.dialect.Allocators.Pinned) &&
		b.lookup(b.setting(PoolSetting)) != withoutPool
}

// reused returns the pool of a device's plain memory, made at its first use; nil if it is
// not to be used.
func (b *poolFloor) reused(number int) (*pool.Pool, error) {
	d, err := b.device(number)
	if err != nil {
		return nil, err
	}
	if p := d.reused.Load(); p != nil || b.withoutReuse {
		return p, nil
	}
	v, err := b.enter(number, defaultStream)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	keep, err := b.releaseThreshold(v, d)
	if err != nil {
		return nil, err
	}
	made := pool.New(&plainMemory{b, d}, int(min(keep, math.MaxInt64)))
	limit, err := b.limitOf(d)
	if err != nil {
		return nil, err
	}
	made.SetLimit(limit)
	made.SetBeside(func(ours int) int { return b.usedBeside(d, ours) })
	d.reused.CompareAndSwap(nil, made)
	return d.reused.Load(), nil
}

// allocatePlain serves the allocator CUDA.
func (b *poolFloor) allocatePlain(r backends.Request) (backends.Address, error) {
	p, err := b.reused(r.Device)
	if err != nil {
		return 0, err
	}
	if p == nil {
		return b.allocateHere(r, b.driver.MemAlloc)
	}
	return b.takeFrom(p, r)
}

// takeFrom takes memory of a pool, with zeros in it if it is asked for.
func (b *poolFloor) takeFrom(p *pool.Pool, r backends.Request) (backends.Address, error) {
	s := streamOfPool(r.Stream)
	at, err := p.Take(r.Size, s)
	if err != nil || !r.Zero {
		return at, err
	}
	if err := b.zero(at, r); err != nil {
		_, _ = p.GiveBack(at, s)
		return 0, err
	}
	return at, nil
}

// streamOfPool names a stream as pools do. The per-thread one is another stream in each thread, so nothing is known
// about it.
func streamOfPool(s backends.Stream) backends.Stream {
	if s = shared(s); s == perThreadStream {
		return backends.EveryStream
	}
	return s
}

// freePlain frees memory of the allocator CUDA. For memory that is not the pool's, such as that of another library,
// it waits for the device.
func (b *poolFloor) freePlain(at backends.Region, size int, s backends.Stream) error {
	d, err := b.device(at.Device)
	if err != nil {
		return err
	}
	p, others := d.reused.Load(), d.tagged.all()
	if p == nil && len(others) == 0 {
		return b.freeHere(at, b.driver.MemFree)
	}
	//mutate:replace plain memory is reused whatever the thread's stream holds
	//mutate:with s, err = b.Resolve(at.Device, s) => s = legacyStream
	if s, err = b.Resolve(at.Device, s); err != nil {
		s = backends.EveryStream
	}
	for _, each := range others {
		if ours, err := each.GiveBack(at.Address, s); ours {
			return err
		}
	}
	if p == nil {
		return b.freeHere(at, b.driver.MemFree)
	}
	if b.checksReuse && s != backends.EveryStream {
		if err := b.spoil(p, at, size, s); err != nil {
			return &backends.NotFreedError{Reason: err}
		}
	}
	ours, err := p.GiveBack(at.Address, s)
	if ours {
		return err
	}
	return b.freeHere(at, b.driver.MemFree)
}

// AllocateAtOnce hands out plain memory that the pool has on a lasting stream, or what is parked.
func (b *poolFloor) AllocateAtOnce(r backends.Request) (backends.Address, bool) {
	if r.Zero || r.Device < 0 || r.Device >= len(b.devices) {
		return 0, false
	}
	d := b.devices[r.Device]
	if r.Allocator == b.dialect.Allocators.Ordered && shared(r.Stream) == legacyStream {
		return d.parked.take(r.Size)
	}
	if r.Allocator != b.dialect.Allocators.Plain {
		return 0, false
	}
	p := d.reused.Load()
	if r.Tag != backends.NoTag {
		own := d.tagged.of(r.Tag)
		if own == nil || !own.of.is(running) {
			return 0, false
		}
		p = own.Pool
	}
	if p == nil {
		return 0, false
	}
	return p.TakeAtOnce(r.Size, shared(r.Stream))
}

// FreeAtOnce takes it back.
func (b *poolFloor) FreeAtOnce(at backends.Region, size int, s backends.Stream) bool {
	if b.checksReuse || at.Device < 0 || at.Device >= len(b.devices) {
		return false
	}
	d := b.devices[at.Device]
	if at.Allocator == b.dialect.Allocators.Ordered {
		//mutate:replace memory is handed out before the stream has come to its release
		//mutate:with shared(s) == legacyStream => true
		return shared(s) == legacyStream && d.parked.put(parkedBlock{at.Address, size}, &d.limited)
	}
	if at.Allocator != b.dialect.Allocators.Plain {
		return false
	}
	for _, each := range d.tagged.all() {
		if each.GiveBackAtOnce(at.Address, shared(s)) {
			return true
		}
	}
	p := d.reused.Load()
	return p != nil && p.GiveBackAtOnce(at.Address, shared(s))
}

// spoil overwrites memory in the order of the stream that it is freed on, as its next user
// might.
func (b *poolFloor) spoil(p *pool.Pool, at backends.Region, size int, s backends.Stream) error {
	if start, bytes, _ := p.Find(at.Address); start != at.Address || size == 0 || bytes < size {
		return nil
	}
	v, err := b.enter(at.Device, s)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(b.driver.Memset8, uintptr(at.Address), freedByte, uintptr(size), b.native(s))
}

// plainMemory is pool.Source.
type plainMemory struct {
	b *poolFloor
	d *device
}

func (m *plainMemory) Allocate(size int) (backends.Address, error) {
	return m.b.allocateHere(backends.Request{Allocator: m.b.dialect.Allocators.Plain, Device: m.d.number, Size: size},
		m.b.driver.MemAlloc)
}

func (m *plainMemory) Free(at backends.Address) error {
	return keptByPool(m.b.freeHere(backends.Region{Address: at, Device: m.d.number}, m.b.driver.MemFree))
}

func (m *plainMemory) Full(err error) bool { return isOutOfMemory(err) }

// Lasting: the backend's own streams end by DestroyStream.
func (m *plainMemory) Lasting(s backends.Stream) bool {
	_, own := m.b.streams.contextOf(s)
	return own || s == legacyStream
}

func (m *plainMemory) Idle(s backends.Stream) (bool, error) {
	if err := m.captured(s); err != nil {
		return false, err
	}
	return m.b.Idle(m.d.number, s)
}

// captured is backends.ErrCapturing while s is captured into a graph, or one that would wait
// for it: to ask it, or to record an event on it, would end or extend the capture.
func (m *plainMemory) captured(s backends.Stream) error {
	b := m.b
	if b.driver.StreamIsCapturing == 0 {
		return nil
	}
	v, err := b.enter(m.d.number, s)
	if err != nil {
		return err
	}
	defer v.leave()
	switch code := b.try(b.driver.StreamIsCapturing, b.native(s), v.slot(0)); {
	case code == captureImplicit, code == success && uint32(v.out[0]) != 0:
		return backends.ErrCapturing
	default:
		return b.finish(b.driver.StreamIsCapturing, code)
	}
}

func (m *plainMemory) Record(s backends.Stream) (backends.Event, error) {
	err := m.captured(s)
	if err != nil {
		return 0, err
	}
	e, err := m.b.NewEvent(m.d.number)
	if err != nil {
		return 0, m.rest(s, err)
	}
	if err := m.b.Record(m.d.number, e, s); err != nil {
		m.Destroy(e)
		return 0, m.rest(s, err)
	}
	return e, nil
}

// rest waits for a stream's context, and returns the error. For the device's own context Synchronize waits.
func (m *plainMemory) rest(s backends.Stream, failed error) error {
	v, err := m.b.enter(m.d.number, s)
	if err != nil {
		return failed
	}
	defer v.leave()
	if v.context != m.d.context.Load() {
		_ = m.b.call(m.b.driver.CtxSynchronize)
	}
	return failed
}

func (m *plainMemory) Done(e backends.Event) (bool, error) { return m.b.Done(m.d.number, e) }

func (m *plainMemory) Wait(s backends.Stream, e backends.Event) error {
	if err := m.captured(s); err != nil {
		return err
	}
	return m.b.Wait(m.d.number, s, e)
}

func (m *plainMemory) Destroy(e backends.Event) { _ = m.b.DestroyEvent(m.d.number, e) }

func (m *plainMemory) Synchronize() error { return m.b.SynchronizeDevice(m.d.number) }
