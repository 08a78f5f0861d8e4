package cuda

import (
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/backends/internal/pool"
)

// pauseState is what may be done with the memory of a tag.
type pauseState int32

const (
	running pauseState = iota
	pausing            // nobody begins to use it any more
	paused
)

// tagged is a tag, and whether its memory is there.
type tagged struct {
	tag      backends.Tag
	changing sync.Mutex   // held by who changes the state, what memory there is, or what is kept of it
	state    atomic.Int32 // a pauseState
}

func (t *tagged) is(s pauseState) bool { return pauseState(t.state.Load()) == s }

// taggedPool is the memory of a tag that libraries have from a device: cut from extents, as plain memory is from what
// the driver gives.
type taggedPool struct {
	*pool.Pool
	of *tagged
}

// taggedPools are those of a device.
type taggedPools struct{ list atomic.Pointer[[]taggedPool] }

func (t *taggedPools) all() []taggedPool {
	if list := t.list.Load(); list != nil {
		return *list
	}
	return nil
}

// of returns the pool of a tag, or nil.
func (t *taggedPools) of(tag backends.Tag) *taggedPool {
	for _, p := range t.all() {
		if p.of.tag == tag {
			return &p
		}
	}
	return nil
}

// find returns the block that a pool has lent at an address, or a size of zero.
func (t *taggedPools) find(address backends.Address) (start backends.Address, size int) {
	for _, p := range t.all() {
		if start, size, _ := p.Find(address); size > 0 {
			return start, size
		}
	}
	return 0, 0
}

// add is called with the device's lock.
func (t *taggedPools) add(p taggedPool) {
	list := append(slices.Clone(t.all()), p)
	t.list.Store(&list)
}

// trim gives back what nobody uses. What belongs to a tag that is being paused or resumed stays.
func (t *taggedPools) trim() (failed error) {
	for _, p := range t.all() {
		if err := p.Trim(); failed == nil {
			failed = err
		}
	}
	return failed
}
