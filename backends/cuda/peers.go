package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"hamr/backends"
)

// peerFloor is the floor of devices that reach each other's memory.
type peerFloor struct {
	orderFloor

	peers        peers
	extents      extents
	withoutPeers bool // see PeerSetting
}

// peers remembers which devices may reach which others' memory. mu also guards
// what extents have mapped, so that none misses a pair.
type peers struct {
	mu    sync.Mutex
	pairs map[[2]int]bool // whether it was possible
	asked map[[2]int]int  // Enables that no Disable has taken back; connect's stay
	own   map[[2]int]bool // where no other library had let the context reach the other one's before
}

// CanAccess reports whether kernels and copies of device from can reach memory of
// device to.
func (b *peerFloor) CanAccess(from, to int) (bool, error) {
	first, second, err := b.pair(from, to)
	if err != nil || from == to || b.withoutPeers {
		return false, err
	}
	v := scratch()
	err = b.call(b.driver.DeviceCanAccessPeer, v.slot(0), uintptr(first.handle), uintptr(second.handle))
	return int32(v.out[0]) != 0, err
}

func (b *peerFloor) pair(from, to int) (first, second *device, err error) {
	if from < 0 || to < 0 {
		return nil, nil, fmt.Errorf("the %s backend has no device %d", b.Name(), min(from, to))
	}
	if first, err = b.device(from); err == nil {
		second, err = b.device(to)
	}
	return first, second, err
}

// Enable lets device from reach memory of device to, CUDAVMM's included. The pool is open to it already.
func (b *peerFloor) Enable(from, to int) error {
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
	p, pair := &b.peers, [2]int{from, to}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pairs == nil {
		p.pairs, p.asked, p.own = map[[2]int]bool{}, map[[2]int]int{}, map[[2]int]bool{}
	}
	if !p.pairs[pair] {
		p.pairs[pair] = false
		code := b.try(b.driver.CtxEnablePeerAccess, b.place(far), 0)
		if code != peerAlreadyAllowed {
			if err := b.finish(b.driver.CtxEnablePeerAccess, code); err != nil {
				return err
			}
			p.own[pair] = true
		}
		//mutate:replace a device that is connected does not reach memory that grew before
		//mutate:with readWrite => noAccess
		if err := b.extents.grantAll(b, second, first, readWrite); err != nil {
			return err
		}
		p.pairs[pair] = true
	}
	p.asked[pair]++
	return nil
}

// Disable implements backends.Peers. Copies between the two devices ask for access by themselves: after
// the first one a Disable only counts.
func (b *peerFloor) Disable(from, to int) error {
	first, second, err := b.pair(from, to)
	if err != nil {
		return err
	}
	p, pair := &b.peers, [2]int{from, to}
	for waited := false; ; waited = true {
		p.mu.Lock()
		if p.asked[pair] != 1 || waited {
			break
		}
		p.mu.Unlock() // what the devices wait for may want it
		if err := errors.Join(b.SynchronizeDevice(from), b.SynchronizeDevice(to)); err != nil {
			return err
		}
	}
	defer p.mu.Unlock()
	switch p.asked[pair] {
	case 0:
		return nil
	case 1:
		if err := b.separate(first, second, pair); err != nil {
			return err
		}
	}
	p.asked[pair]--
	return nil
}

// separate takes access back, or leaves all as it was. peers.mu is held.
func (b *peerFloor) separate(first, second *device, pair [2]int) error {
	far, err := b.primaryContext(second.number)
	if err != nil {
		return err
	}
	v, err := b.enter(first.number, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	err = b.extents.grantAll(b, second, first, noAccess)
	if err == nil && b.peers.own[pair] {
		if code := b.try(b.driver.CtxDisablePeerAccess, b.place(far)); code != peerNotAllowed {
			err = b.finish(b.driver.CtxDisablePeerAccess, code)
		}
	}
	if err != nil {
		return errors.Join(err, b.extents.grantAll(b, second, first, readWrite))
	}
	delete(b.peers.own, pair)
	delete(b.peers.pairs, pair) // a copy may connect them anew
	return nil
}

// openPool gives the devices that can reach d the right to the memory of a pool of d, which is new. Such rights
// never change later: copies into the pool's memory from managed memory, or from another device, that go on
// meanwhile are lost or end with CUDA_ERROR_ILLEGAL_ADDRESS (two H200, driver 580.159.04; see
// docs/rationale/memory.md).
func (b *peerFloor) openPool(d *device, pool uintptr) error {
	for _, other := range b.devices {
		can, err := b.CanAccess(other.number, d.number)
		if err == nil && can {
			access := &poolAccess{location{deviceLocation, other.handle}, readWrite}
			err = b.callWithPointers(b.driver.MemPoolSetAccess, pool, uintptr(unsafe.Pointer(access)), 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// users returns a device and those that may have come to reach its memory.
func (p *peers) users(b *peerFloor, d *device) []*device {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := []*device{d}
	for pair := range p.pairs {
		//mutate:never memory is unmapped under work of a device that reaches it
		if pair[1] == d.number {
			list = append(list, b.devices[pair[0]])
		}
	}
	return list
}

// connect tries once to let two devices reach each other.
func (b *peerFloor) connect(one, other int) {
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

// waitForUsers waits for the devices that reach a device's memory, and reports what went wrong there
// before. A *NotFreedError says that one could not be waited for.
func (b *peerFloor) waitForUsers(d *device) (late error) {
	for _, each := range b.peers.users(b, d) {
		//mutate:skip memory is unmapped under work of its own device
		err := b.SynchronizeDevice(each.number)
		if late = errors.Join(late, err); err != nil && b.SynchronizeDevice(each.number) != nil {
			return &backends.NotFreedError{Reason: late}
		}
	}
	return late
}
