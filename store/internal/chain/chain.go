// Package chain is a list whose members have their neighbours in themselves.
package chain

// Chain is a list whose members have their neighbours in themselves, the oldest first.
type Chain[T any] struct {
	Oldest, newest *T
	Count          int
	Neighbours     func(*T) *Neighbours[T]
}

type Neighbours[T any] struct{ older, Newer *T }

// Push adds a member as the newest.
func (c *Chain[T]) Push(member *T) {
	c.Neighbours(member).older = c.newest
	if c.newest != nil {
		c.Neighbours(c.newest).Newer = member
	} else {
		c.Oldest = member
	}
	c.newest = member
	c.Count++
}

func (c *Chain[T]) Remove(member *T) {
	c.Count--
	at := c.Neighbours(member)
	if at.older != nil {
		c.Neighbours(at.older).Newer = at.Newer
	} else {
		c.Oldest = at.Newer
	}
	if at.Newer != nil {
		c.Neighbours(at.Newer).older = at.older
	} else {
		c.newest = at.older
	}
	*at = Neighbours[T]{}
}

// Renew makes the oldest member the newest.
func (c *Chain[T]) Renew() {
	member := c.Oldest
	c.Remove(member)
	c.Push(member)
}
