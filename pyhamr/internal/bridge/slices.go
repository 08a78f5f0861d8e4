package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/internal/deadline"
)

// slice is how long a call may keep the thread that handles Python's signals: see promptFlag.
const slice = 50 * time.Millisecond

// From how many bytes on a copy is taken to be long, or to be worth asking whether it will be. Other
// than these, only what is known to be pending is asked for: to ask takes as long as to copy a little.
const (
	longBytes     = 32 << 20
	askDownBytes  = 64 << 10
	askUpBytes    = 1 << 20
	specialStream = 16 // below it are handles that may mean another stream on every thread
)

// operation is a call of C's that goes on while C handles signals.
type operation struct {
	stop backends.Stop
	end  context.CancelFunc // of what the operation waits for
	over chan struct{}
	err  error // once it is over
}

// operations are those whose outcome C has yet to be told.
var operations = newNumbered[*operation](func(number uint64) error {
	return fmt.Errorf("%w: the outcome of an operation is told once (number %#x)", gobuffer.ErrFreed, number)
})

// inSlices calls f on another goroutine, which may be on any thread, and returns its outcome, or a
// *BusyError if there is none within a slice.
func inSlices(f func(stop *backends.Stop) error) error {
	return slicesOf(f, func() {})
}

// inSlicesUntil is inSlices of f whose context ends where it is asked to stop.
func inSlicesUntil(f func(ctx context.Context, stop *backends.Stop) error) error {
	ctx, end := context.WithCancel(context.Background())
	return slicesOf(func(stop *backends.Stop) error {
		defer end()
		return f(ctx, stop)
	}, end)
}

// withinSlice calls f with a context that ends after a slice, and reports whether f took longer.
func withinSlice(f func(ctx context.Context) error) (late bool, err error) {
	at, end := sliceContext()
	defer end()
	err = f(at)
	return errors.Is(err, context.DeadlineExceeded), err
}

func sliceContext() (context.Context, context.CancelFunc) {
	c := deadline.Until(context.Background(), time.Now().Add(slice))
	return c, c.End
}

func slicesOf(f func(stop *backends.Stop) error, end context.CancelFunc) error {
	o := &operation{over: make(chan struct{}), end: end}
	begin := Runtime.Delegate()
	go func() {
		defer close(o.over)
		defer Guard(&o.err)
		defer begin()()
		o.err = f(&o.stop)
	}()
	if o.wait() {
		return o.err
	}
	return &BusyError{operations.keep(o)}
}

// wait reports whether the operation is over within a slice.
func (o *operation) wait() bool {
	late := time.NewTimer(slice)
	defer late.Stop()
	select {
	case <-o.over:
		return true
	case <-late.C:
		return false
	}
}

// Proceed waits for an operation for one more slice, and returns as inSlices does.
func Proceed(number uint64) (err error) {
	defer Guard(&err)
	o, err := operations.get(number)
	if err != nil {
		return err
	}
	if !o.wait() {
		return &BusyError{number}
	}
	_, _ = operations.take(number)
	return o.err
}

// Stop asks an operation to end, waits until it has and returns its outcome: backends.ErrStopped,
// unless it was over before.
func Stop(number uint64) (err error) {
	defer Guard(&err)
	o, err := operations.get(number)
	if err != nil {
		return err
	}
	o.stop.Ask()
	o.end()
	//mutate:remove an operation that was asked to end is not waited for
	<-o.over
	_, _ = operations.take(number)
	return o.err
}

// prompt reports whether C asks for a prompt return of a call that may take long.
func (d *Descriptor) prompt() bool { return d != nil && d.Flags&promptFlag != 0 }

// bytes is how many d's elements have.
func (d *Descriptor) bytes() int {
	n := arrayiface.ElementType(d.Element).Size()
	for _, length := range d.borrowedShape() {
		n *= length
	}
	return n
}

// waits reports whether d's movements are over when a call returns.
func (d *Descriptor) waits() bool { return gobuffer.Transfer(d.Transfer) == gobuffer.Sync }

// movementTo is that of all of d's elements to new memory of an allocator.
func (d *Descriptor) movementTo(a backends.Allocator) movement {
	m := movement{to: a, from: backends.Allocator(d.Allocator), waits: d.waits()}
	if a == backends.Same {
		m.to = m.from
	}
	if d.prompt() {
		m.bytes = d.bytes()
	}
	return m
}

// movementFor is what brings d's elements to where code in a space can touch them.
func (d *Descriptor) movementFor(space backends.Space) movement {
	from := backends.Allocator(d.Allocator)
	if !d.prompt() || from.ReachableFrom(space) {
		return movement{to: backends.Malloc, from: from} // the host waits for what is pending
	}
	m := movement{from: from, bytes: d.bytes()}
	m.to, _ = temporary(space)
	return m
}

// temporary is the allocator that code in a space is first given memory of.
func temporary(space backends.Space) (backends.Allocator, bool) {
	list := backends.Temporaries(space)
	if len(list) == 0 {
		return backends.None, false
	}
	return list[0], true
}

// placeFor is place for code in a space.
func placeFor(space backends.Space, device int) (int, bool) {
	a, known := temporary(space)
	if !known {
		return device, false
	}
	return place(a, device)
}

// foreign reports whether work of others may be pending on d's memory, as far as is known without
// asking. How long that takes nobody knows; hamr's own is as short as what is asked for now.
func (d *Descriptor) foreign() bool {
	if d.Marks == 0 {
		return false
	}
	marks := *(**uint64)(unsafe.Pointer(&d.Marks))
	return atomic.LoadUint64(marks)&1 != 0
}

// movement is what a call does with bytes, as far as it matters for how long that takes.
type movement struct {
	to, from backends.Allocator
	bytes    int
	waits    bool // for the work before it, wherever the bytes go
}

// long reports whether the movement may take long, so that it is to be in slices. All the arrays that
// it uses are asked, where that is worth it; the error is that of work on them which is over. The first
// one says whether C asks for a prompt return.
func (m movement) long(arrays ...*Descriptor) (bool, error) {
	if !arrays[0].prompt() {
		return false, nil
	}
	toHost, fromHost := m.to.Kind() == backends.Pageable, m.from.Kind() == backends.Pageable
	down, up := toHost && !fromHost, fromHost && !toHost
	between := !toHost && !fromHost && m.to.Backend() != m.from.Backend()
	foreign := false
	for _, d := range arrays {
		//mutate:never an operation goes on elsewhere though its stream means another one there
		if 0 < d.Stream && d.Stream < specialStream {
			return false, nil
		}
		foreign = foreign || d.foreign()
	}
	switch {
	case (up || down || between) && m.bytes >= longBytes:
		return true, nil
	case (down || m.waits) && (foreign || m.bytes >= askDownBytes), up && m.bytes >= askUpBytes:
		return pending(arrays)
	}
	return false, nil
}

// pending reports whether something is pending on one of the arrays.
func pending(arrays []*Descriptor) (bool, error) {
	l := listOf(len(arrays))
	defer l.close()
	for _, d := range arrays {
		if _, err := l.borrow(d, nil); err != nil {
			return false, err
		}
	}
	return gobuffer.Pending(l.arrays...)
}

// place returns the device that a number below zero means to the calling thread, for an operation
// that goes on elsewhere, and whether that can be told.
func place(a backends.Allocator, device int) (int, bool) {
	if device >= 0 || a < 0 || a.Kind() == backends.Pageable {
		return device, true
	}
	current, err := CurrentDevice(a.Backend())
	return current, err == nil
}
