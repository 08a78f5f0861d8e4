package store

import (
	"io"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// leader answers requests, whosever they are, one after the other: a goroutine for each connection would have to be
// woken for each request. One that takes long, as it writes to a file, has another leader go on with the others'.
type leader struct {
	server  *Server
	leads   bool
	at      *link // whose request is being answered
	buffer  []byte
	control []byte
	out     []byte
	events  []unix.EpollEvent

	// Whether it is worthwhile to ask for the next request for a while is one thing after most of them, and
	// another after a seal, whose maker may be about to tell of the object.
	usually, afterSeal wire.Spinner
	sealed             bool
}

// mostEventsAtOnce is of how many descriptors one call tells.
const mostEventsAtOnce = 64

// lead has a goroutine answer requests.
func (s *Server) lead() {
	s.connections.Add(1)
	l := &leader{
		server: s, leads: true, buffer: make([]byte, protocol.MostPacket), control: make([]byte, wire.ControlBytes),
		events: make([]unix.EpollEvent, mostEventsAtOnce),
	}
	go l.run()
}

func (l *leader) run() {
	s := l.server
	defer s.connections.Done()
	for {
		soon := &l.usually
		if l.sealed {
			soon, l.sealed = &l.afterSeal, false
		}
		n, err := s.links.poll.Wait(l.events, soon)
		if err != nil {
			return // of descriptors that are the server's own
		}
		for i := range l.events[:n] {
			number := wire.NumberOf(&l.events[i])
			if number == 0 {
				for _, k := range s.links.here() {
					l.end(k, io.EOF)
				}
				return
			}
			if k := s.links.find(number); k != nil {
				l.hear(k, number&1 == ofProcess)
			}
			if !l.leads { // what else there is, another one is told of
				return
			}
		}
	}
}

// hear answers what a link has, or has it hung up when its process has ended.
func (l *leader) hear(k *link, dead bool) {
	if dead {
		l.server.links.deaf(k)
		//mutate:remove a session lasts as long as a forked child's copy of its socket
		k.hang()
		return
	}
	n, descriptors, err := k.receive(l.buffer, l.control)
	if err == unix.EAGAIN || err == unix.EINTR || err == unix.ECONNRESET { // which tells of replies that nobody has read
		return
	}
	if short := err == wire.ErrShort; err == nil || short {
		c := k.conversation
		c.short = short
		l.at, c.leader, c.out.Bytes = k, l, l.out[:0]
		err = c.handle(l.buffer[:n], descriptors)
		l.at, c.leader, l.out, c.out.Bytes = nil, nil, c.out.Bytes, nil
	}
	if err != nil || (!l.leads && !l.server.links.back(k)) {
		l.end(k, err)
	}
}

// end ends a connection, and what it has.
func (l *leader) end(k *link, why error) {
	l.server.links.remove(k)
	l.server.leave(k.conversation, why)
	k.close(why)
}

// stall is told that the request which is being answered takes long. The lock is held.
func (s *Server) stall() {
	l := s.acting
	//mutate:always all wait for a request that takes long
	if l == nil {
		return
	}
	s.acting = nil
	l.leads = false
	l.at.conversation.leader = nil
	s.links.leave(l.at)
	s.lead()
}

// waitMoved waits until a unit was spilled or brought back. The lock is let go of meanwhile.
func (s *Server) waitMoved() {
	s.stall()
	s.moved.Wait()
}

// pause lets go of the lock for what takes long.
func (s *Server) pause(long func()) {
	s.stall()
	s.mu.Unlock()
	defer s.mu.Lock()
	long()
}
