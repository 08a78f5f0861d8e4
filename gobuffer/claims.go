package gobuffer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// ErrInUse is returned where elements would be used or changed that an access has for its own, see AccessMode.
var ErrInUse = errors.New("the elements are in use")

func (c *claim) excludes(p piece) bool {
	return (c.temporary || c.origin() == p.origin()) && c.mayShare(p)
}

// add claims p for somebody who has it by the access holder, or by none. It refuses if another
// claim on some of the elements writes, or if this one does.
func (c *claims) add(p piece, mode Mode, holder uint32) (*claim, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	//mutate:never elements are lent twice for writing
	if other := c.find(p, holder, mode.Writes()); other != nil {
		return nil, fmt.Errorf("%w: an access for %q has some of them; end it before one for %q", ErrInUse, other.mode, mode)
	}
	if c.last == 0 {
		// Elsewhere in every process, since a forked child has arrays of its parent's.
		c.last = rand.Uint32()
	}
	c.last = max(c.last+1, 1)
	mine := &claim{piece: p, mode: mode, number: c.last, within: holder, temporary: true}
	c.list = append(c.list, mine)
	c.all.Add(1)
	if mode.Writes() {
		c.writing.Add(1)
	}
	return mine, nil
}

// inPlace is told whether the elements that were claimed are used where they are.
func (c *claims) inPlace(mine *claim, is bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	mine.temporary = !is
}

func (c *claims) remove(old *claim) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	i := slices.Index(c.list, old)
	if i < 0 {
		return
	}
	c.list = slices.Delete(c.list, i, i+1)
	c.all.Add(-1)
	if old.mode.Writes() {
		c.writing.Add(-1)
	}
}

// refuse is ErrInUse if an access writes some of p's elements, unless they are held by that.
func (c *claims) refuse(p piece, holder uint32) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	//mutate:never elements are changed while they are lent for writing
	if other := c.find(p, holder, false); other != nil {
		return fmt.Errorf("%w: an access for %q has some of them; end it before changing the buffer", ErrInUse, other.mode)
	}
	return nil
}

// refuseUse is ErrInUse if an access excludes one that is about to read p's elements or to write some.
func (c *claims) refuseUse(p piece, holder uint32, writes bool) error {
	if c.all.Load() == 0 {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if other := c.find(p, holder, writes); other != nil {
		return fmt.Errorf("%w: an access for %q has some of them; end it before a kernel uses them", ErrInUse, other.mode)
	}
	return nil
}

// writes reports whether an access writes some of p's elements, wherever they are for it.
func (c *claims) writes(p piece) bool {
	if c.writing.Load() == 0 {
		return false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.ContainsFunc(c.list, func(each *claim) bool { return each.mode.Writes() && each.mayShare(p) })
}

// find returns a claim that excludes who has p by holder: one that writes or, where he writes, any.
func (c *claims) find(p piece, holder uint32, writes bool) *claim {
	for _, other := range c.list {
		if (writes || other.mode.Writes()) && other.excludes(p) && !c.isWithin(holder, other.number) {
			return other
		}
	}
	return nil
}

// isWithin reports whether the access holder is the numbered one, or was made from its elements.
func (c *claims) isWithin(holder, number uint32) bool {
	for holder != 0 && holder != number {
		i := slices.IndexFunc(c.list, func(each *claim) bool { return each.number == holder })
		if i < 0 {
			return false
		}
		holder = c.list[i].within
	}
	return holder == number
}
