package hetero

import (
	"context"
	"errors"
	"runtime"

	"hamr/backends"
)

// Source is what a Context is begun from: a *Token or a *Product.
type Source interface {
	begin(s *Scheduler) (*Context, error)
}

// Context is what a module works in: a device, and a stream that it enqueues on. It is CMSSW's
// CUDAScopedContext, without a current device, since goroutines have none: see OnThread. Contexts nest
// and overlap. All methods are safe for concurrent use.
type Context struct {
	line   *line
	tenant uint32
	usage  usage
}

// Begin returns a context on the device of source. From a token it has the token's stream. Of the
// contexts that are begun from what one context has wrapped, the first, and it alone, takes over that
// one's stream; the others have streams of their own, and run at the same time.
func (s *Scheduler) Begin(source Source) (*Context, error) {
	if source == nil {
		return nil, zeroError("source", "a token or a product")
	}
	return source.begin(s)
}

// newContext takes over a user of the line.
func newContext(l *line, tenant uint32) *Context {
	c := &Context{line: l, tenant: tenant}
	c.usage.open()
	return c
}

// Place returns the device.
func (c *Context) Place() Place {
	if c == nil || c.line == nil {
		return Place{}
	}
	return c.line.cache.place
}

// Stream returns the stream to enqueue on until End.
func (c *Context) Stream() backends.Stream {
	if c == nil || c.line == nil {
		return 0
	}
	return c.line.stream
}

// enter must be followed by leave where it returns nil.
func (c *Context) enter() error {
	if c == nil || c.line == nil {
		return zeroError("context", "what Begin returns")
	}
	if !c.usage.begin() {
		return ErrEnded
	}
	return nil
}

func (c *Context) leave() error {
	if c.usage.end() {
		return c.line.release()
	}
	return nil
}

// End gives the stream back when no token and no product uses it any more. It does not wait for what
// is enqueued. All calls but the first do nothing.
func (c *Context) End() error {
	if c == nil || c.line == nil || !c.usage.close() {
		return nil
	}
	return c.line.release()
}

// OnThread runs f as Scheduler.OnDevice does.
func (c *Context) OnThread(f func() error) (err error) {
	if err := c.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.leave()) }()
	return c.line.cache.onDevice(f)
}

// OnDevice runs f on a thread of its own meanwhile, whose current device is that of p, where the
// backend's runtime has such a thing. What was current before is restored after f, a panic of f's
// included. No stream goes with it: it is the place to take memory for the whole job, as CMSSW's
// beginStreamCUDA.
func (s *Scheduler) OnDevice(p Place, f func() error) error {
	c, err := s.cacheOf(p)
	if err != nil {
		return err
	}
	return c.onDevice(f)
}

func (c *cache) onDevice(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if current, ok := backends.As[backends.Current](c.backend); ok {
		before, failed := current.Activate(c.place.Device)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, current.Restore(before)) }()
	}
	return f()
}

// Done returns a channel that receives once: nil when all is over that was enqueued on the stream
// before, or the error of that work. When ctx is cancelled before, it receives the cause, and the
// work goes on. Nothing waits meanwhile, and the context may end.
func (c *Context) Done(ctx context.Context) <-chan error {
	if err := c.enter(); err != nil {
		return failed(err)
	}
	cache := c.line.cache
	e, err := cache.record(c.line.stream)
	if err = errors.Join(err, c.leave()); err != nil {
		return failed(err)
	}
	ask := func() (bool, error) { return cache.streams.Done(cache.place.Device, e) }
	return cache.told(ctx, ask, func(err error) error {
		if err != nil {
			return errors.Join(err, cache.destroyEvent(e))
		}
		cache.giveEvent(e)
		return nil
	})
}

func failed(err error) <-chan error {
	told := make(chan error, 1)
	told <- err
	return told
}

// told is a channel for what becomes of an event, which ask asks. after is called before it receives, with
// the error that the work had; the event may be pending still where that is nil.
func (c *cache) told(ctx context.Context, ask func() (bool, error), after func(error) error) <-chan error {
	told := make(chan error, 1)
	if ctx.Done() == nil {
		c.watcher.add(&watched{ask: ask, told: func(err error) { told <- after(err) }})
		return told
	}
	over := make(chan struct{})
	number := c.watcher.add(&watched{ask: ask, told: func(err error) {
		told <- after(err)
		close(over)
	}})
	go func() {
		select {
		case <-over:
		case <-ctx.Done():
			if c.watcher.remove(number) {
				told <- errors.Join(context.Cause(ctx), after(nil))
			}
		}
	}()
	return told
}
