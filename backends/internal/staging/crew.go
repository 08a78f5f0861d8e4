package staging

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hamr/backends/waiting"
)

// lingering is how long a worker waits for the next transfer before it sleeps. Transfers often follow each other, and
// to wake a thread takes as long as to copy some hundred kilobytes.
const lingering = 100 * time.Microsecond

// room is how many jobs are on their way at once.
const room = 64

// crew is the workers that look out for a transfer. The zero value is ready.
type crew struct {
	once sync.Once
	jobs chan *transfer
	idle atomic.Int32 // those that no job was sent to
}

// send gives a transfer that many workers.
func (c *crew) send(t *transfer, count int) {
	c.once.Do(func() { c.jobs = make(chan *transfer, room) })
	for range count {
		if c.taken() {
			c.jobs <- t
		} else {
			go c.work(t)
		}
	}
}

// taken takes a waiting worker, and reports whether there was one.
func (c *crew) taken() bool {
	for {
		n := c.idle.Load()
		if n == 0 {
			return false
		}
		if c.idle.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// work is what a worker does from its start to its end.
func (c *crew) work(t *transfer) {
	for t != nil {
		t.copyPieces()
		t = c.next()
	}
}

// next returns the next transfer, or nil if there is none for long.
func (c *crew) next() *transfer {
	c.idle.Add(1)
	idle := pause{spins: spins}
	defer idle.end()
	for since := time.Now(); time.Since(since) < lingering; {
		select {
		case t := <-c.jobs:
			return t
		default:
			idle.next()
		}
	}
	if c.taken() {
		return nil
	}
	return <-c.jobs // somebody has taken this one
}

// pause lets a moment pass for a worker without work.
type pause struct {
	spins  int // how often it is the processor that pauses
	count  int
	longer waiting.Pauses
}

// How often a processor pauses for some hundred nanoseconds before others may have it, and how
// often where there is none for each. To yield wakes threads, so it comes late.
const (
	spins      = 1000
	spinsAlone = 10
)

func (p *pause) next() {
	if p.count < p.spins {
		p.count++
		relax()
		return
	}
	p.longer.Next(math.MaxInt64)
}

// end must be called after the last next, on the same goroutine, and may be at other times.
func (p *pause) end() {
	p.longer.End()
	p.count = 0
}
