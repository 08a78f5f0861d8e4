package gobuffer

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer/internal/counts"
)

// Action is what an Event tells.
type Action uint8

// What is told of memory.
const (
	Allocated Action = iota
	Freed
	Grown // Size bytes more
)

// Event is something that was done with memory while there was a Recorder.
type Event struct {
	Action  Action
	Library Library
	Thread  int32
	Region  backends.Region
	Size    int
	Stream  backends.Stream
	Time    int64 // nanoseconds since 1970
	Stack   int64
}

// Recorder writes down what is done with memory from Record to Stop.
type Recorder struct {
	runtime *Runtime
	stack   func() int64
	most    int
	events  []Event // the oldest at first, once there are most
	first   int
	dropped int64
	stopped bool
	behalf  map[int]origin // by the thread that works for another
}

// origin is the thread and stack that an allocation is recorded for.
type origin struct {
	thread int
	stack  int64
}

var errRecording = errors.New("memory is being recorded already")

// Record begins to write down up to most events. Beyond that the oldest are dropped. Allocations know their thread and
// time from now on. stack, if it is not nil, is called on the allocating thread and returns a number for the caller's
// stack, or zero. Locks of the Runtime are held then, so stack must not call the Runtime. There is one Recorder at a
// time.
func (r *Runtime) Record(most int, stack func() int64) (*Recorder, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if most < 1 {
		return nil, valueError("most", most, "a count of 1 or more")
	}
	b := &r.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.recorder() != nil {
		return nil, errRecording
	}
	o := &Recorder{runtime: r, stack: stack, most: most, behalf: map[int]origin{}}
	b.listen(o)
	return o, nil
}

// recorder is the Recorder, or nil.
func (b *books) recorder() *Recorder {
	for _, l := range b.listeners {
		if o, is := l.(*Recorder); is {
			return o
		}
	}
	return nil
}

func (o *Recorder) come(m *Memory, size int) {
	known := o.now()
	m.runtime.counters[m.region.Allocator].Remember(&m.place, known)
	o.add(Allocated, m, size, known)
}

func (o *Recorder) gone(m *Memory, size int) {
	o.add(Freed, m, size, o.now())
}

func (o *Recorder) grown(m *Memory, by int) { o.add(Grown, m, by, o.now()) }

func (o *Recorder) now() *counts.Record {
	from := o.here()
	return &counts.Record{Thread: from.thread, Time: time.Now().UnixNano(), Stack: from.stack}
}

// here is the thread and stack that the calling goroutine works for.
func (o *Recorder) here() origin {
	thread := unix.Gettid()
	if from, is := o.behalf[thread]; is {
		return from
	}
	from := origin{thread: thread}
	if o.stack != nil {
		from.stack = o.stack()
	}
	return from
}

// Delegate returns a function for another goroutine that works on the caller's behalf. The goroutine calls it before
// the work, so that its allocations are recorded as the caller's, and calls the result after the work.
func (r *Runtime) Delegate() (begin func() (end func())) {
	nothing := func() func() { return func() {} }
	if r.check() != nil {
		return nil
	}
	if r.books.watched.Load() == 0 {
		return nothing
	}
	b := &r.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	o := b.recorder()
	if o == nil {
		return nothing
	}
	from := o.here()
	return func() func() {
		runtime.LockOSThread()
		thread := unix.Gettid()
		b.mutex.Lock()
		defer b.mutex.Unlock()
		o.behalf[thread] = from
		return func() {
			b.mutex.Lock()
			delete(o.behalf, thread)
			b.mutex.Unlock()
			runtime.UnlockOSThread()
		}
	}
}

func (o *Recorder) add(a Action, m *Memory, size int, known *counts.Record) {
	e := Event{a, m.library, int32(known.Thread), m.region, size, m.ordered(), known.Time, known.Stack}
	if len(o.events) < o.most {
		o.events = append(o.events, e)
		return
	}
	o.events[o.first] = e
	o.first = (o.first + 1) % o.most
	o.dropped++
}

// Events returns what was written down, the oldest first, and how many events before that were dropped.
func (o *Recorder) Events() (list []Event, dropped int64) {
	if o == nil || o.runtime == nil {
		return nil, 0
	}
	b := &o.runtime.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	list = append(list, o.events[o.first:]...)
	return append(list, o.events[:o.first]...), o.dropped
}

// Stop ends the recording. What was written down stays; again it changes nothing.
func (o *Recorder) Stop() {
	if o == nil || o.runtime == nil {
		return
	}
	b := &o.runtime.books
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !o.stopped {
		o.stopped = true
		b.endListening(o)
	}
}
