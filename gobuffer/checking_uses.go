package gobuffer

import (
	"sync"

	"hamr/backends"
	"hamr/gobuffer/internal/order"
)

// watches are the observed backends.
type watches struct {
	mutex sync.Mutex
	each  map[string]watch // by the backend's name
	ended bool
}

type watch struct {
	stop func()
	err  error
}

func newWitness(c *Checker) *witness {
	return &witness{checker: c, order: order.NewSequence(), told: map[tellOnce]bool{}}
}

// comes is told of new memory, our own or adopted. The first memory of a backend starts the observation of that
// backend's work.
func (c *Checker) comes(m *Memory) {
	if m.backend == nil {
		return
	}
	observer, ok := backends.As[backends.Observer](m.backend)
	if ok && c.watches.begin(m.backend.Name(), observer, c.witness) {
		c.witness.add(m)
	}
}

// grows is told that memory reaches further.
func (c *Checker) grows(m *Memory) { c.witness.grows(m) }

// fills is told that memory is being filled, until over is called.
func (c *Checker) fills(m *Memory) (over func()) { return c.witness.fills(m) }

// soon is told of freed memory that is kept once its device is idle. Nobody may use the memory from now on.
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

// AskStacks registers f, which returns the stack of a thread that has enqueued reported work. It is called if the
// function given to Check returned no stack. The thread waits while f, on another thread, may look at its stack. The
// waiting thread may hold locks, so f must give up soon.
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

// Observed returns, for each backend that can report its work and has checked memory, whether it does: nil, or the
// reason why not.
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
