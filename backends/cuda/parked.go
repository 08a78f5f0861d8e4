package cuda

import (
	"sync"
	"sync/atomic"

	"hamr/backends"
)

const (
	mostParked  = 32 // blocks of each device
	parkedShare = 8  // the part of what the driver's pool keeps that may be parked
)

// parked are blocks of the driver's pool that were given back on the legacy stream, before the driver has them. The
// next one who asks for as much on that stream gets them in the same order as from the driver, whose two calls take
// longer than everything else. The legacy stream never ends, and is never captured.
type parked struct {
	mu     sync.Mutex // never held during a call of the driver
	most   int        // bytes; zero where nothing may be parked
	bytes  int
	blocks []parkedBlock // the oldest first
	full   bool          // the last one had no room
}

type parkedBlock struct {
	at   backends.Address
	size int
}

// take returns a block of exactly that size, since the driver knows no more of it.
func (p *parked) take(size int) (backends.Address, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.blocks) - 1; i >= 0; i-- {
		if p.blocks[i].size == size {
			return p.remove(i).at, true
		}
	}
	return 0, false
}

func (p *parked) remove(i int) parkedBlock {
	block := p.blocks[i]
	p.blocks = append(p.blocks[:i], p.blocks[i+1:]...)
	p.bytes -= block.size
	return block
}

func (p *parked) hold() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// has reports whether an address is in one of the blocks.
func (p *parked) has(at backends.Address) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, block := range p.blocks {
		if at >= block.at && at < block.at+backends.Address(block.size) {
			return true
		}
	}
	return false
}

// put keeps a block that is given back, unless it is for the driver.
func (p *parked) put(block parkedBlock, limited *atomic.Bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	//mutate:replace memory is parked beyond a limit
	//mutate:with limited.Load() => false
	if block.size <= 0 || block.size > p.most || limited.Load() {
		return false
	}
	p.full = len(p.blocks) == mostParked || p.bytes+block.size > p.most
	if !p.full {
		p.keep(block)
	}
	return !p.full
}

func (p *parked) keep(blocks ...parkedBlock) {
	for _, block := range blocks {
		p.blocks = append(p.blocks, block)
		p.bytes += block.size
	}
}

// superseded returns the oldest block for the driver, if another one had no room.
func (p *parked) superseded() []parkedBlock {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.full || len(p.blocks) == 0 {
		return nil
	}
	p.full = false
	return []parkedBlock{p.remove(0)}
}

// taken returns all blocks, which are then the caller's.
func (p *parked) taken() []parkedBlock {
	p.mu.Lock()
	defer p.mu.Unlock()
	blocks := p.blocks
	p.blocks, p.bytes = nil, 0
	return blocks
}

// back keeps what the driver would not take.
func (p *parked) back(blocks ...parkedBlock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep(blocks...)
}
