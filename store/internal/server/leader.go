package server

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"hamr/store/internal/book"
	"hamr/store/internal/links"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// requests read a request, do what it asks, and append the reply's fields. The server's lock is held. After an error
// nothing was done, except by requests that are answered later.
var requests = [...]func(c *conversation, d *protocol.Decoder, e *protocol.Encoder) error{
	protocol.OpHello:       (*conversation).hello,
	protocol.OpCreate:      (*conversation).create,
	protocol.OpAttach:      (*conversation).attach,
	protocol.OpSeal:        (*conversation).seal,
	protocol.OpAbort:       (*conversation).abort,
	protocol.OpGet:         (*conversation).get,
	protocol.OpRelease:     (*conversation).releaseMany,
	protocol.OpUndo:        (*conversation).undo,
	protocol.OpForget:      (*conversation).forget,
	protocol.OpDelete:      (*conversation).delete,
	protocol.OpPutName:     (*conversation).putName,
	protocol.OpGetName:     (*conversation).getName,
	protocol.OpDropName:    (*conversation).dropName,
	protocol.OpExists:      (*conversation).exists,
	protocol.OpList:        (*conversation).list,
	protocol.OpDescribe:    (*conversation).describe,
	protocol.OpSetMetadata: (*conversation).setMetadata,
	protocol.OpWait:        (*conversation).wait,
	protocol.OpEvents:      (*conversation).watch,
	protocol.OpStatistics:  (*conversation).statistics,
	protocol.OpMark:        (*conversation).mark,
	protocol.OpHold:        (*conversation).hold,
	protocol.OpHoldUnit:    (*conversation).holdUnit,
	protocol.OpRemember:    (*conversation).remember,
}

// takesDescriptors reports whether a request comes with descriptors.
func takesDescriptors(o uint16) bool {
	return o == protocol.OpAttach || o == protocol.OpHold || o == protocol.OpHoldUnit || o == protocol.OpRemember
}

// remember learns of a book that a client has of another server.
func (c *conversation) remember(d *protocol.Decoder, _ *protocol.Encoder) error {
	if err := d.Done(); err != nil {
		return err
	}
	if err := c.one("book"); err != nil {
		return err
	}
	id, at, err := book.Open(c.descriptors[0])
	if err != nil {
		return err
	}
	if err := c.server.table.Remember(c.descriptors[0], id, at); err != nil {
		return err
	}
	wire.Crash("server-learned")
	return nil
}

// handle answers the frames of a packet. The error is one that ends the connection.
func (c *conversation) handle(packet []byte, descriptors []int) (err error) {
	c.descriptors = descriptors
	defer func() {
		wire.CloseAll(c.descriptors)
		c.in = protocol.Decoder{} // the packet is in a leader's buffer, which may end before the connection does
	}()
	for len(packet) > 0 {
		f, rest, err := protocol.NextFrame(packet)
		if err != nil {
			return c.refuse(f, err)
		}
		if err := c.answer(f, len(rest) == 0); err != nil {
			return err
		}
		packet = rest
	}
	return nil
}

// refuse says why the connection ends.
func (c *conversation) refuse(f protocol.Frame, err error) error {
	c.out.Bytes = c.out.Bytes[:0]
	at := c.out.Begin(max(f.Operation, 1), protocol.StatusProtocol, f.Request)
	status := protocol.EncodeError(&c.out, err)
	c.out.End(at)
	c.out.Bytes[6] = byte(status)
	_ = c.transport.Send(c.out.Bytes, nil)
	return err
}

// refuseBreach ends the connection of a client that has broken a rule.
func (c *conversation) refuseBreach(f protocol.Frame, format string, values ...any) error {
	return c.refuse(f, &protocol.ProtocolError{Problem: fmt.Sprintf(format, values...)})
}

// mostTold is of how many slabs a client is told with one answer.
const mostTold = 256

func (c *conversation) answer(f protocol.Frame, last bool) error {
	switch {
	case f.Status != 0:
		return c.refuseBreach(f, "a request's state of %d", f.Status)
	case !c.greeted && f.Operation != protocol.OpHello:
		return c.refuseBreach(f, "something else before the greeting")
	case len(c.descriptors) > 0 && last && !takesDescriptors(f.Operation):
		return c.refuseBreach(f, "%d descriptors with operation %d, which takes none", len(c.descriptors), f.Operation)
	}
	c.in = protocol.Decoder{Rest: f.Payload}
	c.out.Bytes = c.out.Bytes[:0]
	s := c.server
	s.lock.Lock()
	s.requests++
	if c.session != nil && f.IsAnswered() {
		if c.session.Watch.IsWaiting() {
			s.lock.Unlock()
			return c.refuseBreach(f, "a request while another one waits")
		}
		if c.session.Memory.HasGone() {
			at := c.out.Begin(protocol.OpGone, protocol.StatusDone, 0)
			c.session.Memory.TakeGone(mostTold, func(n int) { c.out.U32(uint32(n)) }, c.out.ID)
			c.out.End(at)
		}
	}
	at := c.out.Begin(f.Operation, protocol.StatusDone, f.Request)
	if f.IsAnswered() {
		c.begin(f)
	}
	s.lock.Stall = c.stall
	var err error
	if int(f.Operation) < len(requests) && requests[f.Operation] != nil {
		err = requests[f.Operation](c, &c.in, &c.out)
	} else {
		err = &protocol.ProtocolError{Problem: fmt.Sprintf("operation %d is no request", f.Operation)}
	}
	s.lock.Stall = nil
	s.lock.Unlock()
	defer func() {
		for _, d := range c.sending {
			d.Release()
		}
		c.sending = c.sending[:0]
	}()
	var broken *protocol.ProtocolError
	switch {
	case errors.As(err, &broken):
		return c.refuse(f, broken)
	case err == errLater:
		return nil
	case err != nil:
		fail(&c.out, at, f.Operation, f.Request, err)
	}
	c.out.End(at)
	c.numbers = c.numbers[:0]
	for _, d := range c.sending {
		c.numbers = append(c.numbers, d.Number)
	}
	wire.Crash("server-sending")
	return c.transport.Send(c.out.Bytes, c.numbers)
}

// link is a connection of the server.
type link = links.Link[conversation]

// leader answers all requests, one after the other: if each connection had a goroutine, it would have to be woken for
// each request. When a request takes long, as it writes to a file, another leader goes on with the other requests.
type leader struct {
	server  *Server
	leads   bool
	at      *link // whose request is being answered
	stall   func()
	buffer  []byte
	control []byte
	out     []byte
	events  []unix.EpollEvent

	// Whether it is worthwhile to ask for the next request for a while is learned apart after a seal: its maker may be
	// about to tell of the object.
	usually, afterSeal wire.Spinner
	sealed             bool
}

// mostEventsAtOnce is of how many descriptors one call tells.
const mostEventsAtOnce = 64

func (s *Server) newLeader() *leader {
	l := &leader{
		server: s, leads: true, buffer: make([]byte, protocol.MostPacket), control: make([]byte, wire.ControlBytes),
		events: make([]unix.EpollEvent, mostEventsAtOnce),
	}
	l.stall = l.stepAside
	return l
}

// lead has a goroutine answer requests.
func (s *Server) lead() {
	s.leaders.Add(1)
	go s.newLeader().run()
}

func (l *leader) run() {
	s := l.server
	defer s.leaders.Done()
	for {
		soon := &l.usually
		if l.sealed {
			soon, l.sealed = &l.afterSeal, false
		}
		n, err := s.links.Poll.Wait(l.events, soon)
		if err != nil {
			return // of descriptors that are the server's own
		}
		for i := range l.events[:n] {
			number := wire.NumberOf(&l.events[i])
			if number == 0 {
				for _, k := range s.links.Here() {
					l.end(k, io.EOF)
				}
				return
			}
			if k, dead := s.links.Find(number); k != nil {
				l.hear(k, dead)
			}
			if !l.leads { // another leader is told of what else there is
				return
			}
		}
	}
}

// hear answers what a link has, or hangs it up when its process has ended.
func (l *leader) hear(k *link, dead bool) {
	if dead {
		l.server.links.Deaf(k)
		//mutate:remove a session lasts as long as a forked child's copy of its socket
		k.Hang()
		return
	}
	n, descriptors, err := k.Receive(l.buffer, l.control)
	if err == unix.EAGAIN || err == unix.EINTR || err == unix.ECONNRESET { // the last where replies were not read
		return
	}
	if short := err == wire.ErrShort; err == nil || short {
		c := k.Conversation
		c.short = short
		l.at, c.stall, c.out.Bytes = k, l.stall, l.out[:0]
		err = c.handle(l.buffer[:n], descriptors)
		l.at, c.stall, l.out, c.out.Bytes = nil, nil, c.out.Bytes, nil
		if c.sealed {
			l.sealed, c.sealed = true, false
		}
	}
	if err != nil || (!l.leads && !l.server.links.Back(k)) {
		l.end(k, err)
	}
}

// end ends a connection, and what it has.
func (l *leader) end(k *link, why error) {
	l.server.links.Remove(k)
	l.server.leave(k.Conversation, why)
	k.Close(why)
}

// leave ends what a connection has.
func (s *Server) leave(c *conversation, why error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var broken *protocol.ProtocolError
	if errors.As(why, &broken) {
		s.breaches++
	}
	if c.session != nil {
		s.table.Quiet = s.table.Closed
		s.table.End(c.session)
		s.table.Quiet = false
	}
}

// stepAside starts another leader, as the request that is being answered takes long. The lock is held.
func (l *leader) stepAside() {
	l.leads = false
	l.at.Conversation.stall = nil
	l.server.links.Leave(l.at)
	l.server.lead()
}
