// Package deadline has contexts that end at a time by the clock.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Context ends at a time, or with its parent. Unlike one of package context it sets no timer unless it
// is asked for Done: Go may have to wake a thread for a timer.
type Context struct {
	context.Context
	until time.Time
	done  sync.Once
	timed context.Context
	stop  context.CancelFunc
}

// Until returns a context that ends at a time, or with its parent. End gives it back.
func Until(parent context.Context, until time.Time) *Context {
	if earlier, ok := parent.Deadline(); ok && earlier.Before(until) {
		until = earlier
	}
	return &Context{Context: parent, until: until}
}

// Deadline is that of [context.Context].
func (c *Context) Deadline() (time.Time, bool) { return c.until, true }

// Done is that of [context.Context], and sets a timer.
func (c *Context) Done() <-chan struct{} {
	c.done.Do(func() { c.timed, c.stop = context.WithDeadline(c.Context, c.until) })
	if c.timed == nil { // after End
		return c.Context.Done()
	}
	return c.timed.Done()
}

// Err is that of [context.Context], by the clock.
func (c *Context) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if time.Now().Before(c.until) {
		return nil
	}
	return context.DeadlineExceeded
}

// End gives the timer back, if there is one.
func (c *Context) End() {
	c.done.Do(func() {})
	if c.stop != nil {
		c.stop()
	}
}
