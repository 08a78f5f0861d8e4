package hetero

import (
	"errors"
	"sync/atomic"

	"hamr/backends"
)

// ErrReleased is returned by every use of a Token or Product after Release, of a Block after Free and
// of a CachingAllocator after Close.
var ErrReleased = errors.New("it was released")

// ErrEnded is returned by every use of a Context after End.
var ErrEnded = errors.New("the context has ended")

// line is a stream with those who name it: tokens, contexts and products. The last of them gives
// it back.
type line struct {
	cache  *cache
	stream backends.Stream
	users  atomic.Int32
	// tenant is the number of the context that enqueues on the stream: the latest one. Of the
	// contexts that are begun from what a tenant has wrapped, one is the next.
	tenant atomic.Uint32
}

// newLine has one user.
func (c *cache) newLine() (*line, error) {
	stream, err := c.takeStream()
	if err != nil {
		return nil, err
	}
	l := &line{cache: c, stream: stream}
	l.users.Store(1)
	return l, nil
}

// retain is for who knows of another user.
func (l *line) retain() { l.users.Add(1) }

func (l *line) release() error {
	if l.users.Add(-1) > 0 {
		return nil
	}
	return l.cache.giveStream(l.stream)
}

// usage counts those who are using something, and one for that it was not given back yet.
type usage struct {
	users atomic.Int32
	over  atomic.Bool
}

func (u *usage) open() { u.users.Store(1) }

// begin reports whether it can be used, until end.
func (u *usage) begin() bool {
	if u.over.Load() {
		return false
	}
	for {
		users := u.users.Load()
		if users == 0 {
			return false
		}
		if u.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

// end reports whether nobody uses it any more, nor ever will.
func (u *usage) end() bool { return u.users.Add(-1) == 0 }

// close reports whether nobody uses it any more, likewise. All but its first call do nothing.
func (u *usage) close() bool { return u.over.CompareAndSwap(false, true) && u.end() }
