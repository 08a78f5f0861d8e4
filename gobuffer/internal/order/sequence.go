package order

import "hamr/backends"

// Sequence is what comes before what, of work on streams that somebody tells of: for each queue how far it knows that
// each other one has come, before what is enqueued on it next. Where a thread has waited, the work is over, for
// whatever anybody enqueues from then on.
type Sequence struct {
	queues map[backends.Queue]*queueOrder
	closed map[backends.Queue]struct{} // of these: nothing more is enqueued
	events map[backends.Event]frontier
	over   frontier
}

// frontier is the number of the last work of each queue that has ended; what is not there is zero.
type frontier map[backends.Queue]uint64

type queueOrder struct {
	last   uint64
	before frontier
}

func NewSequence() *Sequence {
	return &Sequence{queues: map[backends.Queue]*queueOrder{}, closed: map[backends.Queue]struct{}{},
		events: map[backends.Event]frontier{}, over: frontier{}}
}

func (o *Sequence) queue(q backends.Queue) *queueOrder {
	of := o.queues[q]
	if of == nil {
		of = &queueOrder{before: frontier{}}
		o.queues[q] = of
	}
	return of
}

// Enqueue numbers the next work of a queue.
func (o *Sequence) Enqueue(q backends.Queue) uint64 {
	of := o.queue(q)
	of.last++
	return of.last
}

// until is all that a queue has now, and what came before it, as far as that is not over.
func (o *Sequence) until(q backends.Queue) frontier {
	//mutate:replace a queue comes back after it was forgotten
	//mutate:with o.queues[q] => o.queue(q)
	of, r := o.queues[q], frontier{}
	if of == nil {
		return r
	}
	for other, to := range of.before {
		if o.IsOver(other, to) {
			delete(of.before, other)
		} else {
			r[other] = to
		}
	}
	if !o.IsOver(q, of.last) {
		r[q] = of.last
	}
	return r
}

func (r frontier) raise(q backends.Queue, to uint64) {
	if to > r[q] {
		r[q] = to
	}
}

// join has q come after what is reached. What is over already need not be kept.
func (o *Sequence) join(q backends.Queue, r frontier) {
	before := o.queue(q).before
	for other, to := range r {
		if other != q && !o.IsOver(other, to) {
			before.raise(other, to)
		}
	}
}

func (o *Sequence) After(q, other backends.Queue) {
	if q != other {
		o.join(q, o.until(other))
	}
}

//mutate:replace an event does not stand for what its stream had waited for
//mutate:with o.until(q) => frontier{q: o.queue(q).last}
func (o *Sequence) Record(e backends.Event, q backends.Queue) { o.events[e] = o.until(q) }

func (o *Sequence) Wait(q backends.Queue, e backends.Event) { o.join(q, o.events[e]) }

func (o *Sequence) Forget(e backends.Event) { delete(o.events, e) }

func (o *Sequence) Reach(e backends.Event) { o.end(o.events[e]) }

func (o *Sequence) end(r frontier) {
	for q, to := range r {
		if o.queues[q] != nil {
			o.over.raise(q, to)
		}
	}
	for q := range o.closed {
		o.drop(q)
	}
}

// Finish is that all that a queue has is over, and what it waits for.
func (o *Sequence) Finish(q backends.Queue) {
	//mutate:replace what a stream waited for is not over with it
	//mutate:with o.end(o.until(q)) => o.over.raise(q, o.queue(q).last)
	o.end(o.until(q))
}

// Close is that nothing more will be enqueued on a queue; it returns whether that has work which is not over.
func (o *Sequence) Close(q backends.Queue) bool {
	if o.queues[q] != nil {
		o.closed[q] = struct{}{}
		o.drop(q)
	}
	return o.queues[q] != nil
}

// drop forgets a queue that was closed when all that it had, and waited for, is over: what is not known is.
func (o *Sequence) drop(q backends.Queue) {
	//mutate:never a queue that ended is kept for ever
	if len(o.until(q)) == 0 {
		delete(o.queues, q)
		delete(o.closed, q)
		delete(o.over, q)
	}
}

// IsOver reports whether work has ended, as far as anybody was told.
func (o *Sequence) IsOver(q backends.Queue, number uint64) bool {
	return number <= o.over[q] || o.queues[q] == nil
}

// ComesBefore reports whether work of a queue ends before what is enqueued on another one next.
func (o *Sequence) ComesBefore(q backends.Queue, number uint64, next backends.Queue) bool {
	if q == next || o.IsOver(q, number) {
		return true
	}
	of := o.queues[next]
	return of != nil && number <= of.before[q]
}
