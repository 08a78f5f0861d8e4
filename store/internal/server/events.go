package server

import (
	"encoding/binary"
	"time"

	"hamr/store/internal/protocol"
)

const (
	mostEvents  = 4096
	eventsAtOne = 256
)

// eventQueue is what a client has not asked for yet.
type eventQueue struct {
	list   []protocol.Event
	missed int64
}

func (q *eventQueue) encode(e *protocol.Encoder) {
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

// tell has all who watch know of an event.
func (s *Server) tell(event protocol.Event) {
	for c := range s.watchers {
		q := c.events
		if len(q.list) >= mostEvents {
			q.missed++
			continue
		}
		q.list = append(q.list, event)
		if w := c.Waiting; w != nil && w.events {
			s.finish(w)
		}
	}
}

// waiter is a request that is answered later. Its connection may send nothing else that has an
// answer meanwhile.
type waiter struct {
	session *session
	request uint64
	ids     []protocol.ID // to be sealed, each once
	count   int           // how many of them are enough
	ready   int           // how many are
	name    string
	events  bool
	timer   *time.Timer
	send    func(packet []byte) // does not wait
}

// wait has a request answered when it can be, or at its time.
func (s *Server) wait(w *waiter, timeout time.Duration) {
	w.session.Waiting = w
	for _, id := range w.ids {
		s.WaitingIDs.add(id, w)
	}
	if w.name != "" {
		s.WaitingNames.add(w.name, w)
	}
	if timeout >= 0 {
		w.timer = time.AfterFunc(timeout, func() {
			s.Mu.Lock()
			defer s.Mu.Unlock()
			if w.session.Waiting == w {
				s.finish(w)
			}
		})
	}
}

// unwait forgets what a session waits for.
func (s *Server) unwait(c *session) {
	w := c.Waiting
	if w == nil {
		return
	}
	c.Waiting = nil
	if w.timer != nil {
		w.timer.Stop()
	}
	for _, id := range w.ids {
		s.WaitingIDs.remove(id, w)
	}
	if w.name != "" {
		s.WaitingNames.remove(w.name, w)
	}
}

// waiters are the requests that wait, by what for. They may end while others go over them.
type waiters[K comparable] map[K]map[*waiter]struct{}

func (all waiters[K]) add(key K, w *waiter) {
	if all[key] == nil {
		all[key] = map[*waiter]struct{}{}
	}
	all[key][w] = struct{}{}
}

func (all waiters[K]) remove(key K, w *waiter) {
	delete(all[key], w)
	if len(all[key]) == 0 {
		delete(all, key)
	}
}

// finish answers a request that waits with what there is now.
func (s *Server) finish(w *waiter) {
	s.unwait(w.session)
	var e protocol.Encoder
	operation := protocol.OpWait
	switch {
	case w.events:
		operation = protocol.OpEvents
	case w.name != "":
		operation = protocol.OpGetName
	}
	at := e.Begin(operation, protocol.StatusDone, w.request)
	switch {
	case w.events:
		w.session.events.encode(&e)
	case w.name != "":
		if n := s.named(w.name); n != nil {
			e.ID(n.object.id)
			break
		}
		e.Bytes = e.Bytes[:at]
		at = e.Begin(operation, protocol.StatusNotFound, w.request)
		protocol.EncodeError(&e, &protocol.NotFoundError{Name: w.name})
	default:
		s.encodeReady(&e, w.ids)
	}
	e.End(at)
	w.send(e.Bytes)
}

// settled reports whether an object is there for everybody to get.
func (s *Server) settled(id protocol.ID) bool {
	o := s.Objects[id]
	return o != nil && o.Sealed
}

func (s *Server) encodeReady(e *protocol.Encoder, ids []protocol.ID) {
	at := len(e.Bytes)
	e.U32(0)
	n := uint32(0)
	for _, id := range ids {
		if s.settled(id) {
			n++
			e.ID(id)
		}
	}
	binary.LittleEndian.PutUint32(e.Bytes[at:], n)
}

// ready tells those who wait for an object that it is sealed, or is there no more.
func (s *Server) ready(id protocol.ID, change int) {
	for w := range s.WaitingIDs[id] {
		if w.ready += change; w.ready >= w.count {
			s.finish(w)
		}
	}
}
