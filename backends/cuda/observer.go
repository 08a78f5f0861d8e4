package cuda

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// observer turns calls of the driver into what a Witness is told.
type observer struct {
	to     backends.Witness
	driver observersFunctions
	mutex  sync.Mutex // of what follows; the driver is not called with it, who may have other threads wait
	last   backends.Queue
	queues map[streamOf]*queue
	legacy map[uintptr]*inLegacyOrder // by context
	ended  map[uintptr][]*queue       // by context: streams that were destroyed while they had work
	events map[uintptr]*queue         // those that were recorded into a graph: in which stream that began
	unseen map[uintptr]bool           // those that others record, or wait for, as graphs and other processes
	graphs bool                       // some may signal something when they are launched, or wait for it
	green  bool                       // there are contexts of parts of a device
	most   int                        // queues, above which threads that have ended are looked for
	sizes  map[uintptr][]parameter    // of a kernel's
}

// streamOf names a stream: the special ones are another one in each context, and in each thread.
type streamOf struct {
	handle  backends.Stream
	context uintptr // of a special one
	thread  int     // of the thread's
}

// queue is a stream that was used.
type queue struct {
	number  backends.Queue
	context uintptr
	origin  *queue // whose capture into a graph it is part of
}

// inLegacyOrder are a context's streams that wait for its legacy default stream, and it for them.
type inLegacyOrder struct {
	itself *queue
	others []*queue
	ended  []*queue // what these held still counts
}

func newObserver(b *Backend, to backends.Witness) (*observer, error) {
	o := &observer{to: to, queues: map[streamOf]*queue{}, legacy: map[uintptr]*inLegacyOrder{},
		ended: map[uintptr][]*queue{}, events: map[uintptr]*queue{}, unseen: map[uintptr]bool{},
		sizes: map[uintptr][]parameter{}}
	return o, dl.Bind(b.library, &o.driver)
}

// called is told of a call of the driver, before and after it.
func (o *observer) called(number uint32, c *callOf) {
	call := observedCalls[number]
	f := call.before
	if c.site != 0 {
		f = call.after
	}
	if f != nil {
		f(o, &observed{c, call})
	}
}

// waited is told that a thread has waited for a stream, or for all of a context.
func (o *observer) waited(number uint32, s *synchronized) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if number == contextSynchronized {
		o.contextOver(s.context)
	} else if q := o.queues[streamOf{handle: backends.Stream(s.stream)}]; q != nil {
		o.to.Over(q.number)
	}
}

// lock takes the lock, and returns the queue of a call's stream, perhaps a new one.
func (o *observer) lock(c *observed, handle backends.Stream) *queue {
	of := streamOf{handle: handle}
	if handle <= perThreadStream {
		of.context, of.handle = c.context, legacyStream
		if handle == perThreadStream || handle == defaultStream && c.perThread {
			of.handle, of.thread = perThreadStream, unix.Gettid()
		}
	}
	o.mutex.Lock()
	q := o.queues[of]
	if q == nil && handle > perThreadStream {
		// It was made before anybody observed, or by an unobserved call, in an unknown context.
		o.mutex.Unlock()
		blocking, context, capturing := o.asked(handle, c.context)
		o.mutex.Lock()
		if q = o.queues[of]; q == nil {
			q = o.newQueue(of, context, blocking)
			if capturing {
				q.origin = q
			}
		}
	}
	if q == nil {
		q = o.newQueue(of, c.context, true)
	}
	return q
}

func (o *observer) newQueue(of streamOf, context uintptr, blocking bool) *queue {
	if of.thread != 0 && len(o.queues) > o.most {
		o.endThreads()
	}
	o.last++
	q := &queue{number: o.last, context: context}
	o.queues[of] = q
	in := o.inLegacyOrder(context)
	if of.handle == legacyStream {
		in.itself = q
	} else if blocking {
		in.others = append(in.others, q)
	}
	return q
}

// endThreads ends the streams of threads that have ended.
func (o *observer) endThreads() {
	for of, q := range o.queues {
		if of.thread != 0 && unix.Tgkill(unix.Getpid(), of.thread, 0) == unix.ESRCH {
			o.endQueue(of, q)
		}
	}
	o.most = max(64, 2*len(o.queues))
}

func (o *observer) inLegacyOrder(context uintptr) *inLegacyOrder {
	in := o.legacy[context]
	if in == nil {
		in = &inLegacyOrder{}
		o.legacy[context] = in
	}
	return in
}

// inOrder reports what the work that is enqueued now comes after. It returns false where the work goes into a graph.
func (o *observer) inOrder(q *queue) bool {
	if q.origin != nil {
		//mutate:replace work that goes into a graph is told of
		//mutate:with return false => return true
		return false
	}
	in := o.inLegacyOrder(q.context)
	switch {
	case q == in.itself:
		for _, list := range [][]*queue{in.others, in.ended} {
			for _, other := range list {
				o.to.After(q.number, other.number)
			}
		}
		in.ended = nil
	case in.itself != nil && slices.Contains(in.others, q):
		//mutate:remove streams do not wait for the default one
		o.to.After(q.number, in.itself.number)
	}
	return true
}

// enqueues reports work, and keeps its number for after the call.
func (o *observer) enqueues(c *observed, handle backends.Stream, touches ...backends.Touch) {
	*c.shared = 0
	name := dl.Text(c.symbol)
	if name == "" {
		name = dl.Text(c.function)
	}
	q := o.lock(c, handle)
	var then func()
	if o.inOrder(q) {
		var number uint64
		number, then = o.to.Enqueue(backends.Work{Queue: q.number, Stream: handle, Name: name, Touches: touches})
		*c.shared = uint64(q.number)<<numberBits | number&(1<<numberBits-1)
	}
	o.mutex.Unlock()
	if then != nil {
		then()
	}
}

// numberBits are those of a work's number that a call's shared word has, beside the queue's.
const numberBits = 40

// enqueued returns what enqueues has kept.
func (c *observed) enqueued() (q backends.Queue, number uint64) {
	return backends.Queue(*c.shared >> numberBits), *c.shared & (1<<numberBits - 1)
}

func (o *observer) refused(c *observed) {
	if q, number := c.enqueued(); *c.result != success && q != 0 {
		o.to.Refused(q, number)
	}
}

func (o *observer) records(c *observed) { o.recordsFor(c, false) }

func (o *observer) recordsWithFlags(c *observed) { o.recordsFor(c, c.word(2)&recordExternal != 0) }

// recordsFor notes the record of an event. If it is captured for external users, the graph records it.
func (o *observer) recordsFor(c *observed, external bool) {
	event, handle := c.word(0), backends.Stream(c.word(1))
	if c.site != 0 && *c.result != success {
		return
	}
	q := o.lock(c, handle)
	defer o.mutex.Unlock()
	if !o.inOrder(q) {
		if external {
			o.unseen[event] = true // the graph records it, whenever it is launched
		} else {
			o.events[event] = q.origin
		}
		return
	}
	delete(o.events, event)
	o.to.Record(backends.Event(event), q.number)
	if o.unseen[event] {
		o.to.Over(q.number) // who waits for it elsewhere may signal that by any way
	}
}

func (o *observer) waits(c *observed) {
	handle, event := backends.Stream(c.word(0)), c.word(1)
	q := o.lock(c, handle)
	defer o.mutex.Unlock()
	if origin := o.events[event]; origin != nil {
		q.origin = origin
	} else if q.origin != nil {
		//mutate:remove a graph waits for nobody
		o.graphs = true // it waits for the event at each launch
	} else if o.inOrder(q) {
		o.to.Wait(q.number, backends.Event(event))
		//mutate:never an event of another process's stands for nothing
		if o.unseen[event] {
			o.afterAny(q)
		}
	}
}

func (o *observer) forgets(c *observed) {
	o.mutex.Lock()
	delete(o.events, c.word(0))
	delete(o.unseen, c.word(0))
	o.mutex.Unlock()
	o.to.Forget(backends.Event(c.word(0)))
}

func (o *observer) reached(c *observed) {
	if *c.result == success {
		o.reach(c.word(0))
	}
}

func (o *observer) reach(event uintptr) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.to.Reached(backends.Event(event))
	if o.unseen[event] {
		o.anyOver()
	}
}

func (o *observer) streamOver(c *observed) {
	if *c.result != success {
		return
	}
	q := o.lock(c, backends.Stream(c.word(0)))
	defer o.mutex.Unlock()
	// The legacy default stream has waited for others. Those without work have not waited for it.
	if q.origin == nil && (q != o.inLegacyOrder(q.context).itself || o.inOrder(q)) {
		o.to.Over(q.number)
	}
}

func (o *observer) allOver(c *observed) { o.overIfDone(c, c.context) }

func (o *observer) overIfDone(c *observed, context uintptr) {
	if *c.result != success {
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.contextOver(context)
}

func (o *observer) contextOver(context uintptr) {
	if o.green {
		o.anyOver() // that of the whole device waits for those of its parts
		return
	}
	for _, q := range o.queues {
		if q.context == context {
			o.to.Over(q.number)
		}
	}
	for _, q := range o.ended[context] {
		o.to.Over(q.number)
	}
	delete(o.ended, context)
	o.inLegacyOrder(context).ended = nil
}

// made is told of a new stream, whose handle may have been another one's.
func (o *observer) made(c *observed) {
	if *c.result != success {
		return
	}
	handle := backends.Stream(wordAt(c.word(0)))
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end(handle)
	o.newQueue(streamOf{handle: handle}, c.context, uint32(c.word(1))&nonBlocking == 0)
}

func (o *observer) destroys(c *observed) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.end(backends.Stream(c.word(0)))
}

func (o *observer) end(handle backends.Stream) {
	of := streamOf{handle: handle}
	if q := o.queues[of]; q != nil {
		o.endQueue(of, q)
	}
}

func (o *observer) endQueue(of streamOf, q *queue) {
	//mutate:remove a stream's handle stays the one that was destroyed
	delete(o.queues, of)
	open := o.to.Close(q.number)
	if open {
		//mutate:remove a destroyed stream's work is never over
		o.endedIn(q)
	}
	in := o.inLegacyOrder(q.context)
	if i := slices.Index(in.others, q); i >= 0 {
		in.others = slices.Delete(in.others, i, i+1)
		if open {
			//mutate:remove the default stream does not wait for what a destroyed stream had
			in.ended = append(o.stillOpen(in.ended), q)
		}
	}
}

// endedIn keeps a queue that was closed until all that it had is over.
func (o *observer) endedIn(q *queue) {
	o.ended[q.context] = append(o.stillOpen(o.ended[q.context]), q)
}

// stillOpen is a list of closed queues without those that are over by now, each time it has grown much.
func (o *observer) stillOpen(list []*queue) []*queue {
	if len(list) < cap(list) || len(list) < 64 {
		return list
	}
	return slices.DeleteFunc(list, func(q *queue) bool { return !o.to.Close(q.number) })
}

// captures is told that a stream's work goes into a graph from now on.
func (o *observer) captures(c *observed) {
	if *c.result != success {
		return
	}
	q := o.lock(c, backends.Stream(c.word(0)))
	defer o.mutex.Unlock()
	q.origin = q
}

// captured is told that it goes there no longer, nor that of other streams which came to wait for it.
func (o *observer) captured(c *observed) {
	origin := o.lock(c, backends.Stream(c.word(0)))
	defer o.mutex.Unlock()
	for _, q := range o.queues {
		if q.origin == origin {
			q.origin = nil
		}
	}
	for event, its := range o.events {
		if its == origin {
			delete(o.events, event)
		}
	}
}

// contextEnds notes that a context has waited for all work, and ends with its kernels.
func (o *observer) contextEnds(c *observed) {
	o.unloads(c)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.anyOver()
}

// unloads notes that kernels end. Other kernels may get their handles.
func (o *observer) unloads(*observed) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	//mutate:remove kernels' sizes outlive them
	clear(o.sizes)
}
