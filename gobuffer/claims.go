package gobuffer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// ErrInUse is returned if an operation would use or change elements that an access holds, see AccessMode.
var ErrInUse = errors.New("the elements are in use")

func (c *claim) excludes(p piece) bool {
	return (c.temporary || c.origin() == p.origin()) && c.mayShare(p)
}

// add claims p inside the access holder, or inside none. It refuses if another claim on some of the elements writes, or
// if this one writes and another claim exists.
func (c *claims) add(p piece, mode Mode, holder uint32) (*claim, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	//mutate:never elements are lent twice for writing
	if other := c.find(p, holder, mode.Writes()); other != nil {
		return nil, fmt.Errorf("%w: an access for %q has some of them; end it before one for %q", ErrInUse, other.mode, mode)
	}
	if c.last == 0 {
		// Each process starts elsewhere, since a forked child has arrays of its parent.
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

// inPlace records whether the claimed elements are used where they are.
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

// refuse is ErrInUse if an access writes some of p's elements, unless holder is inside that access.
func (c *claims) refuse(p piece, holder uint32) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	//mutate:never elements are changed while they are lent for writing
	if other := c.find(p, holder, false); other != nil {
		return fmt.Errorf("%w: an access for %q has some of them; end it before changing the buffer", ErrInUse, other.mode)
	}
	return nil
}

// refuseUse is ErrInUse if an access excludes a kernel that reads p's elements or writes some.
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

// find returns a claim that conflicts with using p inside holder: one that writes or, if writes is set, any.
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
