package server

import (
	"io"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Leader answers requests, whosever they are, one after the other: a goroutine for each connection would have to be
// woken for each request. One that takes long, as it writes to a file, has another leader go on with the others'.
type Leader struct {
	Server  *Server
	leads   bool
	at      *Link // whose request is being answered
	buffer  []byte
	control []byte
	out     []byte
	events  []unix.EpollEvent

	// Whether it is worthwhile to ask for the next request for a while is one thing after most of them, and
	// another after a seal, whose maker may be about to tell of the object.
	Usually, afterSeal wire.Spinner
	Sealed             bool
}

// mostEventsAtOnce is of how many descriptors one call tells.
const mostEventsAtOnce = 64

// Lead has a goroutine answer requests.
func (s *Server) Lead() {
	s.Connections.Add(1)
	l := &Leader{
		Server: s, leads: true, buffer: make([]byte, protocol.MostPacket), control: make([]byte, wire.ControlBytes),
		events: make([]unix.EpollEvent, mostEventsAtOnce),
	}
	go l.run()
}

func (l *Leader) run() {
	s := l.Server
	defer s.Connections.Done()
	for {
		soon := &l.Usually
		if l.Sealed {
			soon, l.Sealed = &l.afterSeal, false
		}
		n, err := s.Links.Poll.Wait(l.events, soon)
		if err != nil {
			return // of descriptors that are the server's own
		}
		for i := range l.events[:n] {
			number := wire.NumberOf(&l.events[i])
			if number == 0 {
				for _, k := range s.Links.Here() {
					l.End(k, io.EOF)
				}
				return
			}
			if k := s.Links.find(number); k != nil {
				l.Hear(k, number&1 == ofProcess)
			}
			if !l.leads { // what else there is, another one is told of
				return
			}
		}
	}
}

// Hear answers what a link has, or has it hung up when its process has ended.
func (l *Leader) Hear(k *Link, dead bool) {
	if dead {
		l.Server.Links.deaf(k)
		//mutate:remove a session lasts as long as a forked child's copy of its socket
		k.Hang()
		return
	}
	n, descriptors, err := k.receive(l.buffer, l.control)
	if err == unix.EAGAIN || err == unix.EINTR || err == unix.ECONNRESET { // which tells of replies that nobody has read
		return
	}
	if short := err == wire.ErrShort; err == nil || short {
		c := k.Conversation
		c.short = short
		l.at, c.Leader, c.out.Bytes = k, l, l.out[:0]
		err = c.Handle(l.buffer[:n], descriptors)
		l.at, c.Leader, l.out, c.out.Bytes = nil, nil, c.out.Bytes, nil
	}
	if err != nil || (!l.leads && !l.Server.Links.back(k)) {
		l.End(k, err)
	}
}

// End ends a connection, and what it has.
func (l *Leader) End(k *Link, why error) {
	l.Server.Links.remove(k)
	l.Server.Leave(k.Conversation, why)
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
	l.at.Conversation.Leader = nil
	s.Links.leave(l.at)
	s.Lead()
}

// waitMoved waits until a unit was spilled or brought back. The lock is let go of meanwhile.
func (s *Server) waitMoved() {
	s.stall()
	s.Moved.Wait()
}

// pause lets go of the lock for what takes long.
func (s *Server) pause(long func()) {
	s.stall()
	s.Mu.Unlock()
	defer s.Mu.Lock()
	long()
}
