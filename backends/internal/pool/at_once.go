package pool

import "hamr/backends"

// TakeAtOnce is Take where that neither calls the source nor waits for a thread that does. Otherwise it does nothing,
// and ok is false.
func (p *Pool) TakeAtOnce(size int, s backends.Stream) (at backends.Address, ok bool) {
	size = rounded(size)
	owner := (*p.lasting.Load())[s]
	if owner == nil {
		return 0, false
	}
	if b := p.parts[here()].take(size, owner); b != nil {
		return b.at, true
	}
	if !p.mutex.TryLock() {
		return 0, false
	}
	defer p.mutex.Unlock()
	b := p.find(size, s, owner)
	//mutate:replace a pool ends an event where nobody may be waited for
	//mutate:with (b.owner.event != 0 && b.owner.blocks() == 1) => false
	if b == nil || b.event != 0 || (b.owner.event != 0 && b.owner.blocks() == 1) {
		return 0, false // or an event ends
	}
	p.counts.hits++
	p.lend(b, size)
	return b.at, true
}

// GiveBackAtOnce is to GiveBack what TakeAtOnce is to Take. It leaves to GiveBack what the pool does not keep or did
// not lend.
func (p *Pool) GiveBackAtOnce(at backends.Address, s backends.Stream) (ok bool) {
	owner := (*p.lasting.Load())[s]
	found, ours := p.blocks.Load(at)
	if owner == nil || !ours {
		return false
	}
	b := found.(*block)
	if !b.state.CompareAndSwap(stateLent, stateParked) {
		return false
	}
	if p.parts[here()].put(b, owner, p.keep/partShare) {
		return true
	}
	if p.mutex.TryLock() {
		defer p.mutex.Unlock()
		//mutate:replace a pool keeps more than it may where nobody may be waited for
		//mutate:with p.surplus()+b.size <= 0 => true
		if p.surplus()+b.size <= 0 && !owner.ended.Load() {
			b.owner = owner
			p.returned(b)
			return true
		}
	}
	b.state.Store(stateLent)
	return false
}
