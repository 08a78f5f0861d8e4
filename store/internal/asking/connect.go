package asking

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/internal/deadline"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Connect opens a connection and greets the server. book is the descriptor of what the server writes down, which the
// caller has to close, or -1. Requests that are under way end when hangUp is set.
func Connect(ctx context.Context, path string, hangUp *atomic.Bool) (
	socket *wire.WaitingSocket, book int, err error,
) {
	if socket, err = wire.Dial(path); wire.RanOut(err) {
		return nil, -1, wire.NoDescriptors()
	}
	if err != nil {
		return nil, -1, &protocol.LostError{Path: path, Reason: err}
	}
	socket.HangUp = hangUp
	until := time.Now().Add(wire.AnswersWithin)
	soon := deadline.Until(ctx, until)
	defer soon.End()
	book, err = greet(soon, socket, path)
	if err == nil {
		return socket, book, nil
	}
	socket.Close()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !time.Now().Before(until) {
		reason := fmt.Errorf("process %d listens there, and has not answered for %s", socket.Peer, wire.AnswersWithin)
		err = &protocol.LostError{Path: path, Reason: reason}
	}
	return nil, -1, err
}

// Greeting is the first request of a connection, from a machine since its start.
func Greeting(machine string) []byte {
	var e protocol.Encoder
	at := e.Begin(protocol.OpHello, 0, 1)
	e.U32(protocol.ProtocolVersion)
	e.U32(uint32(os.Getpid()))
	e.Text(machine)
	e.End(at)
	return e.Bytes
}

func greet(ctx context.Context, socket *wire.WaitingSocket, path string) (book int, err error) {
	if socket.Peer, err = wire.CheckPeer(socket.Descriptor, path); err != nil {
		return -1, err
	}
	machine, err := wire.BootID()
	if err != nil {
		return -1, err
	}
	if err := socket.Send(Greeting(machine), nil); err != nil && err != unix.EPIPE { // else it may have said why
		return -1, &protocol.LostError{Path: path, Reason: err}
	}
	socket.Stopped = ctx.Err
	buffer := make([]byte, 1024)
	n, descriptors, err := socket.Receive(buffer)
	book = -1
	defer func() {
		if err == nil && len(descriptors) > 0 {
			book, descriptors = descriptors[0], descriptors[1:]
		}
		wire.CloseAll(descriptors)
	}()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return -1, err
	} else if err == wire.ErrShort {
		return -1, wire.NoDescriptors()
	} else if err != nil {
		return -1, &protocol.LostError{Path: path, Reason: err}
	}
	f, _, err := protocol.NextFrame(buffer[:n])
	if err != nil {
		return -1, err
	}
	d := protocol.Decoder{Rest: f.Payload}
	if f.Status != protocol.StatusDone {
		return -1, protocol.DecodeError(f.Status, &d)
	}
	version := d.U32()
	_ = d.U32() // its process
	boot := d.Text()
	_, _ = d.ID(), d.U32() // which server it is, and its limit of metadata
	if err := d.Done(); err != nil {
		return -1, err
	}
	if version != protocol.ProtocolVersion || boot != machine {
		reason := fmt.Sprintf("version %d of the protocol, start %s of a machine", version, boot)
		return -1, &protocol.RefusedError{Path: path, Reason: reason}
	}
	return -1, nil
}
