package cuda

import (
	"errors"

	"hamr/backends"
	"hamr/backends/internal/pool"
	"hamr/backends/internal/setting"
	"hamr/internal/memorylimit"
)

const (
	portable = 1 // pinned for all contexts
	mapped   = 2 // at an address that devices can use, too
)

// pinnedShare is the part of the host's memory that the pool of page-locked memory keeps.
const pinnedShare = 16

// settled is the one stream of the pool of page-locked memory. The host writes to that memory at once, so it comes
// back only when nobody uses it any more.
const settled backends.Stream = 1

// pinnedPool returns the pool of page-locked memory, made at its first use; nil if there is to
// be none.
func (b *poolFloor) pinnedPool() (*pool.Pool, error) {
	if p := b.pinned.Load(); p != nil || b.withoutReuse {
		return p, nil
	}
	keep, err := setting.Bytes(b.lookup, PinnedThresholdSetting, 0, int(memorylimit.Bytes())/pinnedShare)
	if err != nil {
		return nil, err
	}
	limit, err := setting.Bytes(b.lookup, PinnedPoolLimitSetting, 0, pool.NoLimit)
	if err != nil {
		return nil, err
	}
	made := pool.New(&pinnedMemory{b}, keep)
	made.SetLimit(limit)
	b.pinned.CompareAndSwap(nil, made)
	return b.pinned.Load(), nil
}

// allocatePinned serves the allocator CUDAHost.
func (b *poolFloor) allocatePinned(r backends.Request) (backends.Address, error) {
	if _, err := b.device(r.Device); err != nil {
		return 0, err
	}
	at, err := b.takePinned(r.Size)
	if err == nil && r.Zero {
		clear(hostBytes(at, r.Size))
	}
	return at, err
}

// freePinned frees memory of the allocator CUDAHost.
func (b *poolFloor) freePinned(at backends.Region, size int) error {
	if p := b.pinned.Load(); p != nil && b.checksReuse && size > 0 {
		if start, bytes, _ := p.Find(at.Address); start == at.Address && bytes >= size {
			spoiled := hostBytes(at.Address, size)
			for i := range spoiled {
				spoiled[i] = freedByte
			}
		}
	}
	return b.givePinnedBack(at.Address)
}

// takePinned returns page-locked memory that all devices reach, with any contents. It calls the driver only if too
// little was given back before. If there is no more such memory, isOutOfMemory is true for the error, and pageable
// memory would do.
func (b *poolFloor) takePinned(size int) (backends.Address, error) {
	p, err := b.pinnedPool()
	if err != nil {
		return 0, err
	}
	if p == nil {
		return b.lock(size)
	}
	return p.Take(size, settled)
}

// givePinnedBack takes back what takePinned returned, or other page-locked memory, which is
// freed. All work on what takePinned returned is over.
func (b *poolFloor) givePinnedBack(at backends.Address) error {
	if p := b.pinned.Load(); p != nil {
		if ours, err := p.GiveBack(at, settled); ours {
			return err
		}
	}
	return b.unlock(at)
}

// lock takes page-locked memory from the driver. The system's limit on locked pages counts as out of memory, too. For
// large memory several threads touch huge pages first, and the driver only locks them: that takes a tenth of the time
// in which the driver does both.
func (b *poolFloor) lock(size int) (backends.Address, error) {
	v, err := b.enter(0, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	if size >= hugePage && b.driver.MemHostRegister != 0 && b.driver.MemHostUnregister != 0 {
		if at := mapPages(size); at != 0 {
			if b.call(b.driver.MemHostRegister, uintptr(at), uintptr(mappedSize(size)), portable|mapped) == nil {
				b.ownPages.Store(at, size)
				return at, nil
			}
			unmapPages(at, size)
		}
	}
	err = b.call(b.driver.MemHostAlloc, v.slot(0), uintptr(size), portable|mapped)
	var failed *backends.DeviceError
	if errors.As(err, &failed) {
		switch failed.Code {
		case operatingSystem, notPermitted, notSupported:
			err = &lockError{failed}
		}
	}
	return backends.Address(v.out[0]), err
}

func (b *poolFloor) unlock(at backends.Address) error {
	size, own := b.ownPages.Load(at)
	if own || b.dialect.FreesForOne {
		for _, d := range b.devices {
			// Unlike cuMemFreeHost, the driver forgets the memory at once.
			if err := b.SynchronizeDevice(d.number); err != nil {
				return &backends.NotFreedError{Reason: err}
			}
		}
	}
	if !own {
		return b.freeHere(backends.Region{Address: at}, b.driver.MemFreeHost)
	}
	if err := b.freeHere(backends.Region{Address: at}, b.driver.MemHostUnregister); err != nil {
		return err
	}
	b.ownPages.Delete(at)
	unmapPages(at, size.(int))
	return nil
}

// pinnedMemory is pool.Source for memory that comes back when all work on it is over.
type pinnedMemory struct{ b *poolFloor }

func (m *pinnedMemory) Allocate(size int) (backends.Address, error) { return m.b.lock(size) }

func (m *pinnedMemory) Free(at backends.Address) error { return keptByPool(m.b.unlock(at)) }

func (m *pinnedMemory) Full(err error) bool { return isOutOfMemory(err) }

func (m *pinnedMemory) Lasting(backends.Stream) bool { return true }

func (m *pinnedMemory) Idle(backends.Stream) (bool, error) { return true, nil }

func (m *pinnedMemory) Record(backends.Stream) (backends.Event, error) {
	return 0, errors.ErrUnsupported
}

func (m *pinnedMemory) Done(backends.Event) (bool, error) { return false, errors.ErrUnsupported }

func (m *pinnedMemory) Wait(backends.Stream, backends.Event) error { return errors.ErrUnsupported }

func (m *pinnedMemory) Destroy(backends.Event) {}

func (m *pinnedMemory) Synchronize() error { return nil }
