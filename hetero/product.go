package hetero

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"hamr/backends"
)

// DeviceMismatchError says that a product is of another device than the context that it was to be used in.
type DeviceMismatchError struct {
	Have Place // where the product is
	Want Place // the context's
}

func (e *DeviceMismatchError) Error() string {
	return fmt.Sprintf("the product is on %s, and the context on %s: begin the context from the product, or migrate it",
		e.Have, e.Want)
}

var errProductReleased = fmt.Errorf("a product: %w", ErrReleased)

// Product is a value whose data a device may still be producing: CMSSW's CUDA<T>. Wrap alone makes
// one, and Get alone reads one. All methods are safe for concurrent use.
type Product[T any] struct {
	value T
	made
}

// made is where and when a product was.
type made struct {
	line   *line
	tenant uint32
	event  backends.Event
	usage  usage
	done   atomic.Bool           // the event was seen to be
	asking sync.Mutex            // while the event is asked: who comes second is told what the first was
	failed atomic.Pointer[error] // of the work, once somebody was told: a runtime may tell it only once
}

// Wrap makes a product of a value whose data is produced by what the context's stream holds now. The
// value stays the caller's to release, when nobody uses the product any more.
func Wrap[T any](c *Context, value T) (*Product[T], error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	e, err := c.line.cache.record(c.line.stream)
	if err != nil {
		return nil, errors.Join(err, c.leave())
	}
	//mutate:remove a stream is given back while a product has it
	c.line.retain()
	p := &Product[T]{value: value, made: made{line: c.line, tenant: c.tenant, event: e}}
	p.usage.open()
	if err := c.leave(); err != nil {
		return nil, errors.Join(err, p.Release())
	}
	return p, nil
}

// Get returns a product's value, for use by what is enqueued on the context's stream from now on: if
// the product was made on another stream, and its work is pending, the stream waits for that. The
// caller does not. The error is a *DeviceMismatchError if the product is on another device.
func Get[T any](c *Context, p *Product[T]) (value T, err error) {
	if p == nil {
		return value, errNoProduct
	}
	if err := p.follow(c, false); err != nil {
		return value, err
	}
	return p.value, nil
}

// Migrate is Get for a product that may be on another device: then move makes a value of that of the
// product which is of use on the context's device, by the movement of buffers, say, in the order of
// the context's stream. The result is of the same device and stream as what the context enqueues, and
// the caller's. A product of another backend must be done: see Product.Done. Where two devices' runtimes
// know nothing of each other, as those of two OpenCL platforms, a pending product is waited for.
func Migrate[T any](c *Context, p *Product[T], move func(value T, from Place) (T, error)) (value T, err error) {
	if p == nil {
		return value, errNoProduct
	}
	if move == nil {
		return value, valueError("move", "nil", "a function")
	}
	if err := p.follow(c, true); err != nil {
		return value, err
	}
	if p.Place() == c.Place() {
		return p.value, nil
	}
	// Until what it enqueues is enqueued the stream is the context's.
	if err := c.enter(); err != nil {
		return value, err
	}
	defer func() { err = errors.Join(err, c.leave()) }()
	return move(p.value, p.Place())
}

var errNoProduct = zeroError("product", "what Wrap returns")

// follow makes a context's stream run after the product's work. A product of another device is
// refused, or followed from there.
func (m *made) follow(c *Context, elsewhere bool) (err error) {
	if err := c.enter(); err != nil {
		return err
	}
	defer func() {
		if left := c.leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	if err := m.enter(); err != nil {
		return err
	}
	defer func() {
		if left := m.leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	if err := m.failure(); err != nil {
		return err
	}
	to, from := c.line.cache, m.line.cache
	if to != from {
		if !elsewhere {
			return &DeviceMismatchError{Have: from.place, Want: to.place}
		}
		//mutate:never a consumer waits for its own stream
	} else if c.line.stream == m.line.stream {
		return nil
	}
	pending, err := m.pending()
	//mutate:replace a consumer waits for a product that is done
	//mutate:with !pending => !pending && false
	if !pending || err != nil {
		return err
	}
	if to.place.Backend != from.place.Backend {
		return fmt.Errorf("a product of %s cannot be waited for by a stream of %s: it is pending; await its Done first",
			from.place, to.place)
	}
	//mutate:skip a consumer does not wait for its product
	return to.streams.Wait(to.place.Device, c.line.stream, m.event)
}

// pending asks for the event.
func (m *made) pending() (bool, error) {
	if err := m.failure(); err != nil || m.done.Load() {
		return false, err
	}
	m.asking.Lock()
	defer m.asking.Unlock()
	if err := m.failure(); err != nil || m.done.Load() {
		return false, err
	}
	done, err := m.line.cache.streams.Done(m.line.cache.place.Device, m.event)
	if err != nil {
		return false, m.fail(err)
	}
	if done {
		m.done.Store(true)
	}
	return !done, nil
}

// fail keeps an error for all who ask later, and returns it.
func (m *made) fail(err error) error {
	//mutate:remove the error of a product is told to one consumer alone
	m.failed.CompareAndSwap(nil, &err)
	return err
}

func (m *made) failure() error {
	if failed := m.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// enter must be followed by leave where it returns nil.
func (m *made) enter() error {
	if m.line == nil {
		return errNoProduct
	}
	if !m.usage.begin() {
		return errProductReleased
	}
	return nil
}

func (m *made) leave() error {
	if m.usage.end() {
		return m.giveBack()
	}
	return nil
}

func (m *made) giveBack() error {
	var failed error
	if m.failure() != nil {
		failed = m.line.cache.destroyEvent(m.event)
	} else {
		m.line.cache.giveEvent(m.event)
	}
	return errors.Join(failed, m.line.release())
}

// Place returns the device that the product is on.
func (p *Product[T]) Place() Place {
	if p == nil || p.line == nil {
		return Place{}
	}
	return p.line.cache.place
}

// Stream returns the stream that the product was made on.
func (p *Product[T]) Stream() backends.Stream {
	if p == nil || p.line == nil {
		return 0
	}
	return p.line.stream
}

// Pending reports whether the work that makes the product is not over, without waiting. The error may
// be that of the work.
func (p *Product[T]) Pending() (bool, error) {
	if p == nil {
		return false, errNoProduct
	}
	if err := p.enter(); err != nil {
		return false, err
	}
	pending, err := p.pending()
	return pending, errors.Join(err, p.leave())
}

// Done returns a channel that receives once, as that of Context.Done does: when the product's work is over.
func (p *Product[T]) Done(ctx context.Context) <-chan error {
	if p == nil {
		return failed(errNoProduct)
	}
	if err := p.enter(); err != nil {
		return failed(err)
	}
	ask := func() (bool, error) {
		pending, err := p.pending()
		return !pending, err
	}
	return p.line.cache.told(ctx, ask, func(err error) error { return errors.Join(err, p.leave()) })
}

// Release gives the product's event back and, when nobody else has it, its stream. All calls but the first do nothing.
func (p *Product[T]) Release() error {
	if p == nil || p.line == nil || !p.usage.close() {
		return nil
	}
	return p.giveBack()
}

func (p *Product[T]) begin(s *Scheduler) (*Context, error) {
	if p == nil {
		return nil, errNoProduct
	}
	return p.made.begin(s)
}

func (m *made) begin(s *Scheduler) (_ *Context, err error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer func() {
		if left := m.leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	if !s.has(m.line.cache) {
		return nil, errElsewhere
	}
	//mutate:replace two consumers take over a stream
	//mutate:with CompareAndSwap(m.tenant, m.tenant+1) => Load() >= m.tenant
	if m.line.tenant.CompareAndSwap(m.tenant, m.tenant+1) {
		m.line.retain()
		return newContext(m.line, m.tenant+1), nil
	}
	l, err := m.line.cache.newLine()
	if err != nil {
		return nil, err
	}
	return newContext(l, 0), nil
}
