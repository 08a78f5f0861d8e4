package cuda

import "hamr/backends"

// This is order that the observer does not see: by host functions, values in memory, graphs, and other processes. It
// takes for ordered whatever may be.

const (
	recordExternal = 1 // CU_EVENT_RECORD_EXTERNAL

	configAttributes = 40 // where CUlaunchConfig has its attributes, and how many they are
	configCount      = 48
	attributeSize    = 72
	attributeValue   = 8

	programmaticEvent     = 7 // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
	launchCompletionEvent = 12

	// CUgraphNodeType, and where CUgraphNodeParams has what is of one.
	nodeOfHost             = 3
	nodeWaitsForEvent      = 6
	nodeOfEvent            = 7
	nodeOfSemaphores       = 8
	nodeWaitsForSemaphores = 9
	nodeOfValues           = 12
	nodeValue              = 16
)

// waitsForAny notes that a stream waits for a value in memory. Any stream may write that.
func (o *observer) waitsForAny(c *observed) { o.afterAll(c, backends.Stream(c.word(0))) }

func (o *observer) waitsForSemaphores(c *observed) { o.afterAll(c, backends.Stream(c.word(3))) }

func (o *observer) afterAll(c *observed, handle backends.Stream) { o.orInGraph(c, handle, o.afterAny) }

// orInGraph calls f with a call's stream, unless that is captured. Then each launch of the graph does what f reports.
func (o *observer) orInGraph(c *observed, handle backends.Stream, f func(q *queue)) {
	q := o.lock(c, handle)
	defer o.mutex.Unlock()
	if o.inOrder(q) {
		f(q)
	} else {
		o.graphs = true
	}
}

func (o *observer) afterAny(q *queue) {
	o.any(func(other *queue) { o.to.After(q.number, other.number) })
}

// any calls f with all streams, and those that were destroyed while they had work.
func (o *observer) any(f func(q *queue)) {
	for _, q := range o.queues {
		f(q)
	}
	for _, list := range o.ended {
		for _, q := range list {
			f(q)
		}
	}
}

// signals notes that a thread, by memory or a semaphore, may learn that a stream has reached this point. It may learn
// that at once.
func (o *observer) signals(c *observed) { o.signalled(c, backends.Stream(c.word(0))) }

func (o *observer) signalsSemaphores(c *observed) { o.signalled(c, backends.Stream(c.word(3))) }

// signalled is called before the call, since another thread may learn of it before the call returns, and after it.
func (o *observer) signalled(c *observed, handle backends.Stream) {
	//mutate:replace a host function tells nobody
	//mutate:with func(q *queue) { o.to.Over(q.number) } => func(*queue) {}
	o.orInGraph(c, handle, func(q *queue) { o.to.Over(q.number) })
}

// graphHasMore notes that a graph has, or may have, a node that signals or waits.
func (o *observer) graphHasMore(*observed) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.graphs = true
}

// addsNode is told of a node of whatever kind.
func (o *observer) addsNode(c *observed, parameters uintptr) {
	if parameters == 0 {
		return
	}
	switch halfAt(parameters) {
	case nodeOfHost, nodeWaitsForEvent, nodeOfSemaphores, nodeWaitsForSemaphores, nodeOfValues:
		o.graphHasMore(c)
	case nodeOfEvent:
		o.isUnseen(wordAt(parameters + nodeValue))
	}
}

func (o *observer) anyOver() {
	o.any(func(q *queue) { o.to.Over(q.number) })
	clear(o.ended)
	for _, in := range o.legacy {
		in.ended = nil
	}
}

// isUnseen is told of an event that is not recorded by calls.
func (o *observer) isUnseen(event uintptr) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.unseen[event] = true
}

// opensEvent is told of an event of another process's.
func (o *observer) opensEvent(c *observed) {
	if *c.result == success {
		o.isUnseen(wordAt(c.word(0)))
	}
}

// recordedByKernel reports the events that the kernel of a launch records itself.
func (o *observer) recordedByKernel(config uintptr) {
	if config < leastAddress {
		return
	}
	attribute := wordAt(config + configAttributes)
	for range halfAt(config + configCount) {
		switch halfAt(attribute) {
		case programmaticEvent, launchCompletionEvent:
			o.isUnseen(wordAt(attribute + attributeValue))
		}
		attribute += attributeSize
	}
}

// recordsAll notes that an event stands for all streams of a context, or of a part of its device. Which ones is
// unknown, so it stands for any.
func (o *observer) recordsAll(c *observed) {
	if *c.result != success {
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last++
	all := &queue{number: o.last, context: c.context}
	o.afterAny(all)
	o.to.Record(backends.Event(c.word(1)), all.number)
	if o.to.Close(all.number) {
		o.endedIn(all)
	}
}

// allWait is told that all of these wait for an event.
func (o *observer) allWait(c *observed) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	event := c.word(1)
	for _, q := range o.queues {
		o.to.Wait(q.number, backends.Event(event))
		if o.unseen[event] {
			o.afterAny(q)
		}
	}
}

// elapsed notes that somebody got the time between two events, both of which have been reached.
func (o *observer) elapsed(c *observed) {
	if *c.result == success {
		o.reach(c.word(1))
		o.reach(c.word(2))
	}
}

// itsContextOver is told that a thread has waited for a context, which need not be the current one.
func (o *observer) itsContextOver(c *observed) {
	context := c.word(0)
	if context == 0 {
		context = c.context
	}
	o.overIfDone(c, context)
}

// divides is told that there is a context of a part of a device.
func (o *observer) divides(*observed) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.green = true
}

// exportsEvent is told of an event that other processes wait for from now on, or record.
func (o *observer) exportsEvent(c *observed) { o.isUnseen(c.word(1)) }

// allocated notes memory that was allocated in stream order. The driver orders it after the free.
func (o *observer) allocated(c *observed) {
	if *c.result == success && c.word(0) != 0 {
		o.to.Made(backends.Address(wordAt(c.word(0))), int(c.word(1)))
	}
}
