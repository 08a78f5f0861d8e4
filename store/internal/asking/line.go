// Package asking is a client's connection to a server: requests, one at a time, and their replies. It knows no objects.
package asking

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Call is a request.
type Call struct {
	Operation   uint16
	Build       func(*protocol.Encoder) // appends the fields
	Descriptors []int                   // that go with it, and stay the caller's
	Finds       bool                    // an object, of which another client may still have to tell a new server
	// Read reads the reply's fields; without it the reply has none.
	Read func(d *protocol.Decoder)
	// Take is Read of a reply that may have descriptors, which it has to close.
	Take func(d *protocol.Decoder, descriptors []int) error
	// Undo gives back what was read after the context had ended, and what the server has given unless it was told.
	Undo func(told bool)
	told bool        // that the request is undone
	over func(error) // is told what the request has led to, of several that are under way
}

// Line is a connection, on which one request is under way at a time: its owner sees to that.
type Line struct {
	Path   string
	Socket *wire.WaitingSocket // nil where the connection has ended
	Lost   error               // why it has
	Undoes bool                // the server knows requests to undo others
	Undone bool                // the request was undone whose reply is being read
	Short  bool                // what was received should have descriptors that could not be opened

	// Notes appends what goes with the next request, Gone reads of which slabs nothing is left, and Ended is told when
	// the connection ends. Each may be nil.
	Notes func(*protocol.Encoder)
	Gone  func(*protocol.Decoder)
	Ended func()

	request   uint64
	out       protocol.Encoder
	in        []byte
	abandoned map[uint64]Call // whose replies nobody waits for
	owed      int             // as how many short replies they count
}

// New returns a line to the server at a path.
func New(path string, socket *wire.WaitingSocket) *Line {
	return &Line{
		Path: path, Socket: socket, Undoes: true, in: make([]byte, protocol.MostPacket), abandoned: map[uint64]Call{},
	}
}

// IsIdle reports whether it is connected, and no reply is to come.
func (l *Line) IsIdle() bool { return l.Socket != nil && len(l.abandoned) == 0 }

// Close closes the connection.
func (l *Line) Close() {
	if l.Socket != nil {
		l.Socket.Close()
		l.Socket = nil
	}
}

// Lose ends the connection for a reason.
func (l *Line) Lose(reason error) error {
	if reason == io.EOF {
		reason = errors.New("the connection ended")
	}
	if l.Ended != nil {
		l.Ended()
	}
	l.Close()
	l.Lost = reason
	clear(l.abandoned)
	l.owed = 0
	return &protocol.LostError{Path: l.Path, Reason: reason}
}

// Exchange sends a request and takes its reply.
func (l *Line) Exchange(ctx context.Context, r Call) error {
	if err := l.Collect(ctx, r); err != nil {
		return err
	}
	if err := l.Send(r); err != nil {
		return err
	}
	return l.AwaitOrUndo(ctx, r)
}

// Send sends a request, after the notes.
func (l *Line) Send(r Call) error {
	l.encodeNotes()
	l.request++
	at := l.out.Begin(r.Operation, 0, l.request)
	if r.Build != nil {
		r.Build(&l.out)
	}
	l.out.End(at)
	if size := len(l.out.Bytes) - at; size > protocol.MostPacket {
		accepted := fmt.Sprintf("at most %d: fewer dimensions, ids or metadata", protocol.MostPacket)
		return &protocol.ArgumentError{Argument: "request", Value: fmt.Sprintf("%d bytes", size), Accepted: accepted}
	}
	if len(l.out.Bytes) > protocol.MostPacket {
		if err := l.Socket.Send(l.out.Bytes[:at], nil); err != nil {
			return l.Lose(err)
		}
		l.out.Bytes = append(l.out.Bytes[:0], l.out.Bytes[at:]...)
	}
	if err := l.Socket.Send(l.out.Bytes, r.Descriptors); err != nil {
		return l.Lose(err)
	}
	return nil
}

func (l *Line) encodeNotes() {
	l.out.Bytes = l.out.Bytes[:0]
	if l.Notes != nil {
		l.Notes(&l.out)
	}
}

// SendNotes sends the notes, though no request follows.
func (l *Line) SendNotes() {
	for l.Socket != nil && l.collect(context.Background(), mostAbandoned/2) == nil {
		l.encodeNotes()
		if len(l.out.Bytes) == 0 {
			return
		}
		if err := l.Socket.Send(l.out.Bytes, nil); err != nil {
			_ = l.Lose(err)
		}
	}
}

// Order appends a request about each of some ids, whose reply nobody waits for; how are its other fields. It returns
// the ids for which it has to wait for replies first.
func (l *Line) Order(e *protocol.Encoder, operation uint16, ids []protocol.ID, how ...uint8) (rest []protocol.ID) {
	n := min(len(ids), max(mostAbandoned-l.owed, 0))
	for _, id := range ids[:n] {
		l.request++
		l.owe(l.request, Call{Operation: operation})
		at := e.Begin(operation, 0, l.request)
		e.ID(id)
		e.Bytes = append(e.Bytes, how...)
		e.End(at)
	}
	return append(ids[:0], ids[n:]...)
}

// AwaitOrUndo is Await. If the context ends first, the server undoes the request.
func (l *Line) AwaitOrUndo(ctx context.Context, r Call) error {
	waits, err := l.Await(ctx, r)
	if waits {
		r.told = r.Undo != nil && l.Undo(l.request)
		//mutate:remove a reply that nobody waits for any more is nobody's
		l.owe(l.request, r)
	}
	return err
}

// Await takes the reply to the last request. It still waits for it if the context has ended first.
func (l *Line) Await(ctx context.Context, r Call) (waits bool, err error) {
	for {
		mine, waits, err := l.next(ctx, r)
		if mine || err != nil {
			return waits, err
		}
	}
}

// Undo asks the server to undo a request of late, and reports whether it could.
func (l *Line) Undo(request uint64) bool {
	if !l.Undoes {
		return false
	}
	l.out.Bytes = l.out.Bytes[:0]
	at := l.out.Begin(protocol.OpUndo, 0, 0)
	l.out.U64(request)
	l.out.End(at)
	return wire.SendTo(l.Socket.Descriptor, l.out.Bytes, nil, unix.MSG_DONTWAIT) == nil
}

// next takes a packet, and reports whether it had the reply to the last request. The request still waits if the context
// has ended first.
func (l *Line) next(ctx context.Context, r Call) (mine, waits bool, err error) {
	l.Socket.Stopped = ctx.Err
	n, descriptors, err := l.Socket.Receive(l.in)
	if l.Short = err == wire.ErrShort; err != nil && !l.Short {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return false, true, err
		}
		if lost := l.Lose(err); err != protocol.ErrClosed {
			return false, false, lost
		}
		return false, false, err
	}
	mine, err = l.sort(l.in[:n], descriptors, r)
	if broken := (*protocol.ProtocolError)(nil); errors.As(err, &broken) {
		_ = l.Lose(err)
	}
	return mine, false, err
}

// mostAbandoned is how many short replies may come that nobody waits for. The server ends a connection that has no room
// for more of them: 208 KiB and the kernel's own as a rule.
const mostAbandoned = 128

// room is as how many short replies that of a request counts. A long one takes a packet, or what metadata takes.
func (r Call) room() int {
	switch r.Operation {
	case protocol.OpList, protocol.OpDescribe, protocol.OpGet, protocol.OpStatistics:
		return mostAbandoned / 4
	}
	return 1
}

func (l *Line) owe(request uint64, r Call) {
	l.abandoned[request] = r
	l.owed += r.room()
}

// Collect takes replies that nobody waits for until there is room for that of a request.
func (l *Line) Collect(ctx context.Context, r Call) error {
	return l.collect(ctx, mostAbandoned-r.room())
}

// collect takes replies that nobody waits for until no more than some are to come.
func (l *Line) collect(ctx context.Context, most int) error {
	//mutate:always replies that nobody waits for are not read
	if l.owed <= most {
		return nil
	}
	l.request++ // nobody waits for the last request either
	for l.owed > most {
		if _, _, err := l.next(ctx, Call{}); err != nil {
			return err
		}
	}
	return nil
}

// sort reads the frames of a packet, and reports whether one was the reply to the last request.
func (l *Line) sort(packet []byte, descriptors []int, r Call) (mine bool, err error) {
	for len(packet) > 0 {
		var f protocol.Frame
		if f, packet, err = protocol.NextFrame(packet); err != nil {
			wire.CloseAll(descriptors)
			return false, err
		}
		if f.Operation == protocol.OpGone {
			if err := l.gone(f); err != nil {
				wire.CloseAll(descriptors)
				return false, err
			}
			continue
		}
		if other, known := l.abandoned[f.Request]; known {
			r = other
			delete(l.abandoned, f.Request)
			l.owed -= r.room()
		} else if mine = f.Request == l.request; !mine {
			wire.CloseAll(descriptors)
			problem := fmt.Sprintf("a reply to request %d, of %d", f.Request, l.request)
			return false, &protocol.ProtocolError{Problem: problem}
		}
		l.Undone = !mine && r.told
		err := settle(f, descriptors, r)
		descriptors = nil
		switch {
		case mine:
			return true, err
		case r.over != nil:
			r.over(err)
			if errors.As(err, new(*protocol.ProtocolError)) {
				return false, err
			}
		case err == nil && r.Undo != nil:
			r.Undo(r.told)
		}
	}
	return false, nil
}

func (l *Line) gone(f protocol.Frame) error {
	if l.Gone == nil {
		return nil
	}
	d := protocol.Decoder{Rest: f.Payload}
	l.Gone(&d)
	return d.Done()
}

// settle reads the reply to a request.
func settle(f protocol.Frame, descriptors []int, r Call) error {
	d := protocol.Decoder{Rest: f.Payload}
	if f.Status != protocol.StatusDone {
		wire.CloseAll(descriptors)
		return protocol.DecodeError(f.Status, &d)
	}
	if f.Operation != r.Operation {
		wire.CloseAll(descriptors)
		problem := fmt.Sprintf("operation %d in the reply to %d", f.Operation, r.Operation)
		return &protocol.ProtocolError{Problem: problem}
	}
	if r.Take != nil {
		return r.Take(&d, descriptors)
	}
	wire.CloseAll(descriptors)
	if r.Read != nil {
		r.Read(&d)
	}
	return d.Done()
}
