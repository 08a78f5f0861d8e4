// Package watch tells clients of events, and answers requests that wait for objects and names. It knows neither objects
// nor connections.
package watch

import (
	"time"

	"hamr/store/internal/protocol"
	"hamr/store/internal/turn"
)

const (
	mostEvents  = 4096
	eventsAtOne = 256
)

// Client is the part of a session that says what it waits for.
type Client struct {
	events  *eventQueue // nil where the client does not watch
	waiting *Waiter     // nil where none of its requests waits
}

// IsWaiting reports whether one of its requests waits.
func (c *Client) IsWaiting() bool { return c.waiting != nil }

// eventQueue is what a client has not asked for yet.
type eventQueue struct {
	list   []protocol.Event
	missed int64
}

// EncodeEvents appends what the client has not been told yet, or as much as there is room for.
func (c *Client) EncodeEvents(e *protocol.Encoder) {
	q := c.events
	e.U64(uint64(q.missed))
	q.missed = 0
	n := min(len(q.list), eventsAtOne, 1+(protocol.MostPayload-1024)/(1+16+4+protocol.MostName))
	e.U32(uint32(n))
	for _, event := range q.list[:n] {
		e.U8(uint8(event.Kind))
		e.ID(event.ID)
		e.Text(event.Name)
	}
	q.list = append(q.list[:0], q.list[n:]...)
}

// Begin tells a client of events from now on. It reports whether to answer at once: there are events to tell, or the
// answer says that the watch has begun.
func (w *Watch) Begin(c *Client) (answer bool) {
	if c.events == nil {
		c.events = &eventQueue{}
		w.watchers[c] = struct{}{}
		return true
	}
	return len(c.events.list) > 0 || c.events.missed > 0
}

// Tell tells all who watch of an event.
func (w *Watch) Tell(event protocol.Event) {
	for c := range w.watchers {
		q := c.events
		if len(q.list) >= mostEvents {
			q.missed++
			continue
		}
		q.list = append(q.list, event)
		if r := c.waiting; r != nil && r.Events {
			w.finish(r)
		}
	}
}

// Watch is who watches and who waits. The lock guards it.
type Watch struct {
	lock     *turn.Lock
	watchers map[*Client]struct{}
	ids      waiters[protocol.ID]
	names    waiters[string]
}

// New returns a Watch of nobody.
func New(lock *turn.Lock) *Watch {
	return &Watch{
		lock: lock, watchers: map[*Client]struct{}{}, ids: waiters[protocol.ID]{}, names: waiters[string]{},
	}
}

// Waiter is a request that is answered later. Its connection may send nothing meanwhile that has an answer.
type Waiter struct {
	Client *Client
	IDs    []protocol.ID // objects that are to be sealed, each once
	Count  int           // how many of them are enough
	Ready  int           // how many are
	Name   string        // a name that is to be given, where it is not empty
	Known  protocol.ID   // to another object than this
	Events bool          // any event
	Finish func()        // answers it by what there is now, and does not wait
	timer  *time.Timer
}

// Wait has a request answered when it can be, or when its time has passed. A time below 0 never does.
func (w *Watch) Wait(r *Waiter, timeout time.Duration) {
	r.Client.waiting = r
	for _, id := range r.IDs {
		w.ids.add(id, r)
	}
	if r.Name != "" {
		w.names.add(r.Name, r)
	}
	if timeout >= 0 {
		r.timer = time.AfterFunc(timeout, func() {
			w.lock.Lock()
			defer w.lock.Unlock()
			if r.Client.waiting == r {
				w.finish(r)
			}
		})
	}
}

// unwait forgets what a client waits for.
func (w *Watch) unwait(c *Client) {
	r := c.waiting
	if r == nil {
		return
	}
	c.waiting = nil
	if r.timer != nil {
		r.timer.Stop()
	}
	for _, id := range r.IDs {
		w.ids.remove(id, r)
	}
	if r.Name != "" {
		w.names.remove(r.Name, r)
	}
}

// finish answers a request that waits.
func (w *Watch) finish(r *Waiter) {
	w.unwait(r.Client)
	r.Finish()
}

// End forgets a client.
func (w *Watch) End(c *Client) {
	w.unwait(c)
	delete(w.watchers, c)
}

// Ready tells those who wait for an object that it is sealed, of which change is 1, or gone, of which it is -1.
func (w *Watch) Ready(id protocol.ID, change int) {
	for r := range w.ids[id] {
		if r.Ready += change; r.Ready >= r.Count {
			w.finish(r)
		}
	}
}

// Named tells those who wait for a name that an object has it.
func (w *Watch) Named(name string, id protocol.ID) {
	for r := range w.names[name] {
		//mutate:always who waits for another object is told of the one that is known
		if r.Known != id {
			w.finish(r)
		}
	}
}

// Waits is for how many objects, and for how many names, requests wait.
func (w *Watch) Waits() (ids, names int) { return len(w.ids), len(w.names) }

// waiters are the requests that wait, by what they wait for. They may end during an iteration.
type waiters[K comparable] map[K]map[*Waiter]struct{}

func (all waiters[K]) add(key K, r *Waiter) {
	if all[key] == nil {
		all[key] = map[*Waiter]struct{}{}
	}
	all[key][r] = struct{}{}
}

func (all waiters[K]) remove(key K, r *Waiter) {
	delete(all[key], r)
	if len(all[key]) == 0 {
		delete(all, key)
	}
}
