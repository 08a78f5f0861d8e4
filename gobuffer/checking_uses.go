package gobuffer

import (
	"sync"

	"hamr/backends"
)

// watches are what a Checker is told by of work on memory, for each backend that can tell.
type watches struct {
	mutex sync.Mutex
	each  map[string]watch // by the backend's name
	ended bool
}

type watch struct {
	stop func()
	err  error
}

// comes is told of memory that came, our own or others': from the first of a backend's on its work is looked at.
func (c *Checker) comes(m *Memory) {
	if m.backend == nil {
		return
	}
	if observer, ok := backends.As[backends.Observer](m.backend); ok && c.watches.begin(m.backend.Name(), observer, c.witness) {
		c.witness.add(m)
	}
}

// grows is told that memory reaches further.
func (c *Checker) grows(m *Memory) { c.witness.grows(m) }

// fills is told that memory is being filled, until over is called.
func (c *Checker) fills(m *Memory) (over func()) { return c.witness.fills(m) }

// soon is told of memory that was freed, and is kept when its device has come to rest: nobody uses it from now on.
func (c *Checker) soon(m *Memory, size int, s backends.Stream) {
	c.witness.freed(m, &keptMemory{memory: m, size: size, stream: s, lives: m.lives()})
}

// begin observes a backend, once, and reports whether it is observed.
func (w *watches) begin(name string, observer backends.Observer, to backends.Witness) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	found, known := w.each[name]
	if !known && !w.ended {
		found.stop, found.err = observer.Observe(to)
		if w.each == nil {
			w.each = map[string]watch{}
		}
		w.each[name] = found
	}
	return found.stop != nil
}

// end stops that, for good.
func (w *watches) end() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.ended = true
	for name, each := range w.each {
		if each.stop != nil {
			each.stop()
		}
		delete(w.each, name)
	}
}

// AskStacks has f called for the stack of a thread that has enqueued what is told of, and that Check's function knew no
// stack of: another thread may be able to look at it, while it waits. f is to give up soon, since that thread may have locks.
func (c *Checker) AskStacks(f func(thread int) int64) {
	if c != nil && c.runtime != nil {
		c.asked.Store(&f)
	}
}

func (c *Checker) askedStack(thread int) int64 {
	if f := c.asked.Load(); f != nil {
		return (*f)(thread)
	}
	return 0
}

// Observed says of each backend with memory that is checked, and that can tell of work, whether it does: nil, or why
// not.
func (c *Checker) Observed() map[string]error {
	if c == nil || c.runtime == nil {
		return nil
	}
	c.watches.mutex.Lock()
	defer c.watches.mutex.Unlock()
	found := map[string]error{}
	for name, each := range c.watches.each {
		found[name] = each.err
	}
	return found
}
