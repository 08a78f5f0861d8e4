package server

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Conversation is what the server keeps for a connection.
type Conversation struct {
	Server      *Server
	Transport   wire.Transport
	Leader      *Leader // that handles a packet, while others' wait for that
	Session     *session
	greeted     bool
	last        undoable
	process     int // as the kernel says
	out         protocol.Encoder
	descriptors []int              // that came with the frame, until somebody takes them
	short       bool               // some should have come, and could not be opened
	sending     []*wire.Descriptor // that go with the reply
	numbers     []int
	Hang        func() // ends the connection
}

// admit begins to answer a connection, whose descriptor is its own.
func (s *Server) admit(socket int) {
	wire.Record(socket)
	k := &Link{Socket: socket, Process: -1}
	c := &Conversation{Server: s, Transport: k, Hang: k.Hang}
	k.Conversation = c
	var err error
	if c.process, err = wire.CheckPeer(socket, s.At); err == nil {
		_ = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_SNDBUF, 4*protocol.MostPacket)
		k.Process = processOf(socket)
	}
	if err == nil {
		if err = s.Links.Add(k, s.Options.MaxSessions); err == nil {
			return
		}
	}
	if err == errTooMany {
		most := int64(s.Options.MaxSessions)
		turnAway(socket, &protocol.FullError{Memory: protocol.MemoryConnections, Needed: 1, Limit: most, Used: most})
	}
	k.close(nil)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.refused++
}

// turnAway says why a connection is not answered. Nothing of its may be unread then: the kernel would say in place of
// this that the connection was reset.
func turnAway(socket int, why error) {
	_ = unix.Shutdown(socket, unix.SHUT_RD)
	discard(socket)
	var e protocol.Encoder
	at := e.Begin(protocol.OpHello, protocol.StatusDone, 1)
	e.Bytes[at+6] = byte(protocol.EncodeError(&e, why))
	e.End(at)
	_ = wire.SendTo(socket, e.Bytes, nil, unix.MSG_DONTWAIT)
}

// Leave ends what a connection has.
func (s *Server) Leave(c *Conversation, err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var broken *protocol.ProtocolError
	if errors.As(err, &broken) {
		s.breaches++
	}
	if c.Session != nil {
		s.quiet = s.closed
		s.end(c.Session)
		s.quiet = false
	}
}

// Handle answers the frames of a packet. The error is one that ends the connection.
func (c *Conversation) Handle(packet []byte, descriptors []int) (err error) {
	c.descriptors = descriptors
	defer func() { wire.CloseAll(c.descriptors) }()
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
func (c *Conversation) refuse(f protocol.Frame, err error) error {
	c.out.Bytes = c.out.Bytes[:0]
	at := c.out.Begin(max(f.Operation, 1), protocol.StatusProtocol, f.Request)
	status := protocol.EncodeError(&c.out, err)
	c.out.End(at)
	c.out.Bytes[6] = byte(status)
	_ = c.Transport.Send(c.out.Bytes, nil)
	return err
}

// sendLater sends the answer of a request that waited, or ends the connection.
func (c *Conversation) sendLater(packet []byte) {
	if c.Transport.Send(packet, nil) != nil {
		c.Hang()
	}
}

// errLater is returned by what is answered later.
var errLater = errors.New("later")

func (c *Conversation) answer(f protocol.Frame, last bool) error {
	if f.Status != 0 {
		return c.refuse(f, &protocol.ProtocolError{Problem: fmt.Sprintf("a request's state of %d", f.Status)})
	}
	if !c.greeted && f.Operation != protocol.OpHello {
		return c.refuse(f, &protocol.ProtocolError{Problem: "something else before the greeting"})
	}
	if len(c.descriptors) > 0 && last && f.Operation != protocol.OpAttach && f.Operation != protocol.OpHold && f.Operation != protocol.OpHoldUnit && f.Operation != protocol.OpRemember {
		return c.refuse(f, &protocol.ProtocolError{Problem: fmt.Sprintf("%d descriptors with operation %d, which takes none", len(c.descriptors), f.Operation)})
	}
	d := protocol.Decoder{Rest: f.Payload}
	c.out.Bytes = c.out.Bytes[:0]
	s := c.Server
	s.Mu.Lock()
	s.requests++
	if c.Session != nil && c.Session.Waiting != nil && f.IsAnswered() {
		s.Mu.Unlock()
		return c.refuse(f, &protocol.ProtocolError{Problem: "a request while another one waits"})
	}
	at := 0
	if c.Session != nil && len(c.Session.gone) > 0 && f.IsAnswered() {
		at = c.out.Begin(protocol.OpGone, protocol.StatusDone, 0)
		n := min(len(c.Session.gone), 256)
		c.out.U32(uint32(n))
		for _, id := range c.Session.gone[:n] {
			c.out.ID(id)
		}
		c.Session.gone = append(c.Session.gone[:0], c.Session.gone[n:]...)
		c.out.End(at)
	}
	at = c.out.Begin(f.Operation, protocol.StatusDone, f.Request)
	if f.IsAnswered() {
		c.last = undoable{request: f.Request, operation: f.Operation}
	}
	s.acting = c.Leader
	err := c.dispatch(f, &d, &c.out)
	s.acting = nil
	s.Mu.Unlock()
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
		c.out.Bytes = c.out.Bytes[:at]
		at = c.out.Begin(f.Operation, protocol.StatusDone, f.Request)
		c.out.Bytes[at+6] = byte(protocol.EncodeError(&c.out, err))
	}
	c.out.End(at)
	c.numbers = c.numbers[:0]
	for _, d := range c.sending {
		c.numbers = append(c.numbers, d.Number)
	}
	wire.Crash("server-sending")
	return c.Transport.Send(c.out.Bytes, c.numbers)
}
