// Package relief calls those who can give memory back when it has run out.
package relief

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// Callbacks are functions that may give memory back. They run one after the other.
type Callbacks struct {
	mutex  sync.Mutex // of list, which is never changed in place
	list   []*callback
	turn   sync.Mutex    // of who calls them
	thread atomic.Int64  // of who calls them, or zero
	helped atomic.Uint64 // how often memory was given back
}

type callback struct {
	call func(device, bytes int) bool
}

// Add has f called until remove is.
func (c *Callbacks) Add(f func(device, bytes int) bool) (remove func()) {
	added := &callback{f}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.list = append(slices.Clone(c.list), added)
	return func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.list = slices.DeleteFunc(slices.Clone(c.list), func(each *callback) bool { return each == added })
	}
}

// Helped is how often callbacks have given memory back so far.
func (c *Callbacks) Helped() uint64 { return c.helped.Load() }

// Relieve takes memory again after err if callbacks have given some back. It first retries for callbacks that ran for
// other goroutines since helped was read, and then once after its own callbacks.
func (c *Callbacks) Relieve(err error, helped uint64, take func() error) error {
	for asked, some := false, false; err != nil && !asked; {
		some, asked = c.relieved(err, &helped)
		if !some {
			return err
		}
		err = take()
	}
	return err
}

// relieved reports whether callbacks gave memory back, and whether they were asked to for err.
func (c *Callbacks) relieved(err error, helped *uint64) (some, asked bool) {
	var full *backends.OutOfMemoryError
	if !errors.As(err, &full) {
		return false, false
	}
	c.mutex.Lock()
	list := c.list
	c.mutex.Unlock()
	// Nobody else is on this thread while callbacks run on it.
	if len(list) == 0 || c.thread.Load() == int64(unix.Gettid()) {
		return false, false
	}
	//mutate:replace who runs out of memory does not wait for another's callbacks
	//mutate:with c.turn.Lock() => if !c.turn.TryLock() { return false, false }
	c.turn.Lock()
	defer c.turn.Unlock()
	if now := c.helped.Load(); now != *helped {
		*helped = now
		return true, false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.thread.Store(int64(unix.Gettid()))
	defer c.thread.Store(0)
	for _, each := range list {
		some = each.call(full.Device, full.Size) || some
	}
	if some {
		c.helped.Add(1)
	}
	return some, true
}
