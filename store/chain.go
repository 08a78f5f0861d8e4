package store

// chain is a list whose members have their neighbours in themselves, the oldest first.
type chain[T any] struct {
	oldest, newest *T
	count          int
	neighbours     func(*T) *neighbours[T]
}

type neighbours[T any] struct{ older, newer *T }

// push has a member be the newest.
func (c *chain[T]) push(member *T) {
	c.neighbours(member).older = c.newest
	if c.newest != nil {
		c.neighbours(c.newest).newer = member
	} else {
		c.oldest = member
	}
	c.newest = member
	c.count++
}

func (c *chain[T]) remove(member *T) {
	c.count--
	at := c.neighbours(member)
	if at.older != nil {
		c.neighbours(at.older).newer = at.newer
	} else {
		c.oldest = at.newer
	}
	if at.newer != nil {
		c.neighbours(at.newer).older = at.older
	} else {
		c.newest = at.older
	}
	*at = neighbours[T]{}
}

// renew has the oldest member be the newest.
func (c *chain[T]) renew() {
	member := c.oldest
	c.remove(member)
	c.push(member)
}
