package hetero

import (
	"errors"
	"fmt"
	"slices"

	"hamr/backends"
	"hamr/gobuffer"
)

// Block is memory that a CachingAllocator has handed out.
type Block struct {
	from   *CachingAllocator
	memory *gobuffer.Memory
	bin    int // or zero: it is not kept
	size   int // asked for
	user   *user
	line   *line // nil: the caller keeps the stream
	freed  bool
	marks  []mark // until when it is in use
}

// handle names a stream: that of a default stream may be the same on each device.
type handle struct {
	cache  *cache
	stream backends.Stream
}

// user is a stream from its first use to its end: another one that has the same handle later is
// another user.
type user struct{ handle }

// mark is an event of a stream's work on a block.
type mark struct {
	user  *user
	event backends.Event
}

func (a *CachingAllocator) userOf(c *cache, stream backends.Stream) *user {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	h := handle{c, stream}
	known := a.users[h]
	if known == nil {
		known = &user{h}
		a.users[h] = known
	}
	return known
}

// Region says where the block is.
func (b *Block) Region() backends.Region {
	if b == nil {
		return (*gobuffer.Memory)(nil).Region()
	}
	return b.memory.Region()
}

// Size returns how many bytes were asked for.
func (b *Block) Size() int {
	if b == nil {
		return 0
	}
	return b.size
}

func (b *Block) room() int64 { return int64(b.memory.Size()) }

// Free gives the block back when the work is over that the stream of the context holds now which it
// was allocated in, and those of other contexts that have used it. It does not wait. The caller frees
// a block once: another call is an error.
func (b *Block) Free(users ...*Context) error {
	if err := b.leave(); err != nil {
		return err
	}
	failed := b.mark(b.user)
	for _, c := range users {
		if err := c.enter(); err != nil {
			// What it has enqueued nobody knows any more.
			failed = errors.Join(failed, err, b.memory.Leave(backends.EveryStream))
			continue
		}
		//mutate:replace a block does not wait for all its users
		//mutate:with u != b.user => u == nil
		if u := b.from.userOf(c.line.cache, c.line.stream); u != b.user {
			failed = errors.Join(failed, b.mark(u))
		}
		failed = errors.Join(failed, c.leave())
	}
	if b.line != nil {
		failed = errors.Join(failed, b.line.release())
	}
	return b.giveBack(failed)
}

// freeOn is Free after the work that a stream holds now, which follows all other.
func (b *Block) freeOn(stream backends.Stream) error {
	if err := b.leave(); err != nil {
		return err
	}
	c, resolved, err := b.from.placeOf(stream)
	if err != nil {
		_ = b.memory.Leave(backends.EveryStream)
		return b.giveBack(err)
	}
	return b.giveBack(b.mark(b.from.userOf(c, resolved)))
}

// leave takes the block out of use.
func (b *Block) leave() error {
	if b == nil || b.from == nil {
		return zeroError("block", "what Allocate returns")
	}
	a := b.from
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if b.freed {
		return fmt.Errorf("a block: %w", ErrReleased)
	}
	b.freed = true
	a.counts.Live--
	a.counts.LiveBytes -= b.room()
	a.counts.RequestedBytes -= int64(b.size)
	return nil
}

func (b *Block) giveBack(failed error) error {
	if failed != nil {
		b.bin = 0
	}
	return errors.Join(failed, b.from.keep(b), b.from.sweep())
}

// mark records until when a stream uses the block. If that fails, the release of the memory waits.
func (b *Block) mark(u *user) error {
	e, err := u.cache.record(u.stream)
	if err != nil {
		//mutate:remove a block that cannot be marked is not waited for
		_ = b.memory.Leave(u.stream)
		return err
	}
	b.marks = append(b.marks, mark{u, e})
	return nil
}

// only reports whether no other stream has used the block since it was handed out.
func (b *Block) only(u *user) bool {
	//mutate:replace a block is handed out that another stream uses
	//mutate:with m.user != u => false
	return !slices.ContainsFunc(b.marks, func(m mark) bool { return m.user != u })
}

// settled reports whether all work on a block is over but that of one stream, or of none. It drops
// the marks of what is, or has failed.
func (b *Block) settled(but *user) (bool, error) {
	for len(b.marks) > 0 {
		i := slices.IndexFunc(b.marks, func(m mark) bool { return but == nil || m.user != but })
		if i < 0 {
			break
		}
		m, c := b.marks[i], b.marks[i].user.cache
		done, err := c.streams.Done(c.place.Device, m.event)
		if err != nil {
			b.marks = slices.Delete(b.marks, i, i+1)
			return false, errors.Join(c.earlier(err), c.destroyEvent(m.event))
		}
		//mutate:never a block is handed out whose work is pending
		if !done {
			return false, nil
		}
		c.giveEvent(m.event)
		b.marks = slices.Delete(b.marks, i, i+1)
	}
	return true, nil
}
