package hetero_test

import (
	"fmt"
	"sync"

	"hamr/backends"
	"hamr/backends/backendtest"
)

// checked is a device that keeps account of its own of what is enqueued and what has run, and notes
// what a scheduler should not have asked for.
type checked struct {
	*backendtest.Fake
	mutex    sync.Mutex
	enqueued map[backends.Stream]int // kernels
	executed map[backends.Stream]int
	recorded map[backends.Event]record
	breaches []string
	needless []string // waits, which gobuffer needs where memory is given up because a call has failed
	stay     int      // events whose end has failed
}

// record is a moment of a stream: so many kernels had been enqueued.
type record struct {
	stream backends.Stream
	count  int
}

func newChecked(o backendtest.FakeOptions) *checked {
	return &checked{
		Fake:     backendtest.NewFake(o),
		enqueued: map[backends.Stream]int{},
		executed: map[backends.Stream]int{},
		recorded: map[backends.Event]record{},
	}
}

// launch enqueues a kernel that finds the work of all moments given done, when it runs.
func (c *checked) launch(device int, s backends.Stream, after ...record) error {
	c.mutex.Lock()
	c.enqueued[s]++
	c.mutex.Unlock()
	return c.Launch(device, s, func(func(backends.Address, int) []byte) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.executed[s]++
		for _, r := range after {
			if c.executed[r.stream] < r.count {
				c.breach("a kernel on %#x before kernel %d of %#x", s, r.count, r.stream)
			}
		}
	})
}

func (c *checked) now(s backends.Stream) record {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return record{s, c.enqueued[s]}
}

func (c *checked) over(r record) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.executed[r.stream] >= r.count
}

func (c *checked) breach(format string, arguments ...any) {
	c.breaches = append(c.breaches, fmt.Sprintf(format, arguments...))
}

func (c *checked) note(format string, arguments ...any) {
	c.needless = append(c.needless, fmt.Sprintf(format, arguments...))
}

func (c *checked) Record(device int, e backends.Event, s backends.Stream) error {
	c.mutex.Lock()
	if r, before := c.recorded[e]; before && c.executed[r.stream] < r.count {
		c.breach("event %#x is handed out, and stands for pending work on %#x", e, r.stream)
	}
	c.mutex.Unlock()
	if err := c.Fake.Record(device, e, s); err != nil {
		return err
	}
	now := c.now(s)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.recorded[e] = now
	return nil
}

func (c *checked) Wait(device int, s backends.Stream, e backends.Event) error {
	c.mutex.Lock()
	if r := c.recorded[e]; r.stream == s {
		c.note("stream %#x waits for itself", s)
	}
	c.mutex.Unlock()
	if done, err := c.Fake.Done(device, e); done && err == nil {
		c.mutex.Lock()
		c.note("stream %#x waits for %#x, which is done", s, e)
		c.mutex.Unlock()
	}
	return c.Fake.Wait(device, s, e)
}

func (c *checked) DestroyEvent(device int, e backends.Event) error {
	err := c.Fake.DestroyEvent(device, e)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil {
		c.stay++
		return err
	}
	delete(c.recorded, e)
	return nil
}

func (c *checked) Synchronize(device int, s backends.Stream) error {
	c.mutex.Lock()
	if c.executed[s] < c.enqueued[s] {
		c.note("Synchronize %#x", s)
	}
	c.mutex.Unlock()
	return c.Fake.Synchronize(device, s)
}

func (c *checked) SynchronizeEvent(device int, e backends.Event) error {
	c.mutex.Lock()
	c.note("SynchronizeEvent %#x", e)
	c.mutex.Unlock()
	return c.Fake.SynchronizeEvent(device, e)
}

func (c *checked) SynchronizeDevice(device int) error {
	c.mutex.Lock()
	c.note("SynchronizeDevice")
	c.mutex.Unlock()
	return c.Fake.SynchronizeDevice(device)
}
