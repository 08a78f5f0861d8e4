package gobuffer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrInUse is returned where elements would be used or changed of which another access has
// the only right version: one for writing, see AccessMode.
var ErrInUse = errors.New("the elements are in use")

// claims are the elements that accesses have, of all memory of a Runtime: two Memories may be
// the same bytes, and so may views.
type claims struct {
	writing atomic.Int64 // claims that write, so that changes need not look when there are none
	mutex   sync.Mutex
	list    []*claim
}

// claim is that of one access. It holds no reference: whoever has it does.
type claim struct {
	piece
	mode Mode
}

// add claims p, or refuses if another claim on some of the elements writes, or if this one
// does.
func (c *claims) add(p piece, mode Mode) (*claim, error) {
	mine := &claim{p, mode}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, other := range c.list {
		if (mode.Writes() || other.mode.Writes()) && p.mayShare(other.piece) {
			return nil, fmt.Errorf("%w: an access for %q has some of them; end it before one for %q", ErrInUse, other.mode, mode)
		}
	}
	c.list = append(c.list, mine)
	if mode.Writes() {
		c.writing.Add(1)
	}
	return mine, nil
}

func (c *claims) remove(old *claim) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	i := slices.Index(c.list, old)
	if i < 0 {
		return
	}
	c.list = slices.Delete(c.list, i, i+1)
	if old.mode.Writes() {
		c.writing.Add(-1)
	}
}

// refuse is ErrInUse if an access writes some of p's elements.
func (c *claims) refuse(p piece) error {
	if c.writing.Load() == 0 || p.memory == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, other := range c.list {
		if other.mode.Writes() && p.mayShare(other.piece) {
			return fmt.Errorf("%w: an access for %q has some of them; end it before changing the buffer", ErrInUse, other.mode)
		}
	}
	return nil
}
