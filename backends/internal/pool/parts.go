package pool

import (
	"sync"
	"unsafe"
)

// Goroutines that run at the same time use different parts, mostly.
const (
	partBits  = 3
	partCount = 1 << partBits
	partPlace = 16 // blocks in a part
	partShare = 64 // the part of what the pool keeps that may be in one of them
)

// part holds blocks that came back last, for whoever wants one of the same size on the same
// stream. They count as lent.
type part struct {
	mutex  sync.Mutex
	blocks [partPlace]*block // the latest last
	count  int
	bytes  int
	hits   int64
	_      [64]byte // another part is on another cache line
}

// here returns the part for the calling goroutine, by the address of its stack. It is nearly always the same, and
// seldom that of another goroutine.
func here() int {
	const smallestStack, spread = 11, 2654435769
	var onStack byte
	return int(uint32(uintptr(unsafe.Pointer(&onStack))>>smallestStack) * spread >> (32 - partBits))
}

// take returns a block of that size whose owner may have it at once, or nil.
func (t *part) take(size int, owner *stream) *block {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for i := t.count - 1; i >= 0; i-- {
		b := t.blocks[i]
		if b.size != size || b.owner != owner {
			continue
		}
		t.count--
		copy(t.blocks[i:t.count], t.blocks[i+1:])
		t.blocks[t.count] = nil
		t.bytes -= size
		t.hits++
		b.state.Store(stateLent)
		return b
	}
	return nil
}

// put keeps a parked block that the lasting stream owner may still use; false if there is no
// room for it.
func (t *part) put(b *block, owner *stream, most int) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.count == partPlace || t.bytes+b.size > most || owner.ended.Load() {
		return false
	}
	b.owner = owner
	t.blocks[t.count] = b
	t.count++
	t.bytes += b.size
	return true
}

// flush gives what the parts hold back, and reports whether there was any. It is called with
// Pool.mutex held.
func (p *Pool) flush() (found bool) {
	for i := range p.parts {
		t := &p.parts[i]
		t.mutex.Lock()
		for j, b := range t.blocks[:t.count] {
			p.returned(b)
			t.blocks[j] = nil
			found = true
		}
		t.count, t.bytes = 0, 0
		t.mutex.Unlock()
	}
	return found
}
