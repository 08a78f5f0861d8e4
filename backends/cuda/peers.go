package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// peers remembers which devices may reach which others' memory. mu also guards
// the setting of device.pool and what extents have mapped, so that none misses a pair.
type peers struct {
	mu    sync.Mutex
	pairs map[[2]int]bool // whether it was possible
}

// CanAccess reports whether kernels and copies of device from can reach memory of
// device to.
func (b *Backend) CanAccess(from, to int) (bool, error) {
	first, second, err := b.pair(from, to)
	if err != nil || from == to || b.withoutPeers {
		return false, err
	}
	v := scratch()
	err = b.call(b.driver.DeviceCanAccessPeer, v.slot(0), uintptr(first.handle), uintptr(second.handle))
	return int32(v.out[0]) != 0, err
}

func (b *Backend) pair(from, to int) (first, second *device, err error) {
	if from < 0 || to < 0 {
		return nil, nil, fmt.Errorf("the %s backend has no device %d", b.Name(), min(from, to))
	}
	if first, err = b.device(from); err == nil {
		second, err = b.device(to)
	}
	return first, second, err
}

// Enable lets device from reach memory of device to, that of to's pool and CUDAVMM's included.
func (b *Backend) Enable(from, to int) error {
	first, second, err := b.pair(from, to)
	if err != nil {
		return err
	}
	if from == to {
		return fmt.Errorf("device %d is no peer of itself", from)
	}
	if b.withoutPeers {
		return fmt.Errorf("device %d does not reach device %d: %s=0 forbids it", from, to, b.setting(PeerSetting))
	}
	far, err := b.primaryContext(to)
	if err != nil {
		return err
	}
	v, err := b.enter(from, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	p := &b.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pairs[[2]int{from, to}] {
		return nil
	}
	if p.pairs == nil {
		p.pairs = map[[2]int]bool{}
	}
	p.pairs[[2]int{from, to}] = false
	code := b.try(b.driver.CtxEnablePeerAccess, b.place(far), 0)
	if code != peerAlreadyAllowed {
		if err := b.finish(b.driver.CtxEnablePeerAccess, code); err != nil {
			return err
		}
	}
	if pool := second.pool.Load(); pool != 0 {
		if err := b.openPool(pool, first); err != nil {
			return err
		}
	}
	if err := errors.Join(b.extents.openAll(b, second, first), b.openForeignPools(second, first)); err != nil {
		return err
	}
	p.pairs[[2]int{from, to}] = true
	return nil
}

// openPool lets a device reach the memory of another one's pool, for which access
// between their contexts does nothing.
func (b *Backend) openPool(pool uintptr, to *device) error {
	access := &poolAccess{location{deviceLocation, to.handle}, readWrite}
	return b.callWithPointers(b.driver.MemPoolSetAccess, pool, uintptr(unsafe.Pointer(access)), 1)
}

// publish makes a new pool that of d, open to the devices that reach d already.
func (p *peers) publish(b *Backend, d *device, pool uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair, enabled := range p.pairs {
		// Without access the driver stages copies: slower, and no error.
		if enabled && pair[1] == d.number && b.openPool(pool, b.devices[pair[0]]) != nil {
			p.pairs[pair] = false
		}
	}
	d.pool.Store(pool)
}

// users returns a device and those that may have come to reach its memory.
func (p *peers) users(b *Backend, d *device) []*device {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []*device{d}
	for pair := range p.pairs {
		if pair[1] == d.number {
			list = append(list, b.devices[pair[0]])
		}
	}
	return list
}

// connect tries once to let two devices reach each other.
func (b *Backend) connect(one, other int) {
	if b.withoutPeers {
		return
	}
	for _, pair := range [][2]int{{one, other}, {other, one}} {
		b.peers.mu.Lock()
		_, tried := b.peers.pairs[pair]
		b.peers.mu.Unlock()
		if !tried {
			_ = b.Enable(pair[0], pair[1])
		}
	}
}
