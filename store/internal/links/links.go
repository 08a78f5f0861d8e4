// Package links is the sockets of a server: one that listens, and those of its clients. It does not know what they say.
package links

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Link is a connection of the server, and the transport of its conversation C. The goroutine that answers its requests
// ends it; others can hang it up.
type Link[C any] struct {
	Socket       int
	Process      int // a descriptor that can be read from when the process at the other end has ended, or -1
	Conversation *C
	number       uint64
	away         bool

	mu     sync.Mutex // of sending
	closed bool
}

// Receive returns the packet that is there; unix.EAGAIN where there is none.
func (k *Link[C]) Receive(buffer, control []byte) (n int, descriptors []int, err error) {
	return wire.ReceiveFrom(k.Socket, buffer, control, unix.MSG_DONTWAIT, unix.RawSyscall)
}

// Send does not wait: a client that does not read replies gets no more of them. A client that makes one request at a
// time has room for its reply.
func (k *Link[C]) Send(packet []byte, descriptors []int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return io.EOF
	}
	err := wire.SendTo(k.Socket, packet, descriptors, unix.MSG_DONTWAIT)
	if err == unix.EPIPE {
		return nil // the client has ended: what it has asked for before is still done
	}
	return err
}

// Hang ends the client's requests. The goroutine that answers them finds that there are no more.
func (k *Link[C]) Hang() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		_ = unix.Shutdown(k.Socket, unix.SHUT_RDWR)
	}
}

// mostUnread is how many requests are thrown away of a client that has broken a rule. If one were left, the client
// would read from the kernel that the connection was reset, and not why.
const mostUnread = 256

// discard throws away what a client has sent.
func discard(socket int) {
	buffer, control := make([]byte, 1), make([]byte, wire.ControlBytes)
	for range mostUnread {
		_, descriptors, err := wire.ReceiveFrom(socket, buffer, control, unix.MSG_DONTWAIT, unix.RawSyscall)
		wire.CloseAll(descriptors)
		longer := (*protocol.ProtocolError)(nil)
		if err != nil && err != wire.ErrShort && !errors.As(err, &longer) {
			return
		}
	}
}

// Close closes the descriptors.
func (k *Link[C]) Close(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if broken := (*protocol.ProtocolError)(nil); errors.As(why, &broken) {
		discard(k.Socket)
	}
	_ = unix.Shutdown(k.Socket, unix.SHUT_RDWR) // a forked child may have the descriptor, too
	_ = wire.CloseRecorded(k.Socket)
	if k.Process >= 0 {
		_ = wire.CloseRecorded(k.Process)
	}
}

const PeerPidfd = 77 // SO_PEERPIDFD

// ProcessOf returns a descriptor that can be read from when the process at the other end has ended. A forked child that
// has the socket, too, keeps the connection for longer. It is -1 where the kernel has none (before Linux 6.5); then
// such a connection ends with the last of these processes.
func ProcessOf(socket int) int {
	process, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, PeerPidfd)
	if err != nil {
		return -1
	}
	unix.CloseOnExec(process)
	wire.Record(process)
	return process
}

// TurnAway tells a client why its connection is not answered. None of its requests may be left unread: the client would
// read from the kernel that the connection was reset, and not why.
func TurnAway(socket int, why error) {
	_ = unix.Shutdown(socket, unix.SHUT_RD)
	discard(socket)
	var e protocol.Encoder
	at := e.Begin(protocol.OpHello, protocol.StatusDone, 1)
	e.Bytes[at+6] = byte(protocol.EncodeError(&e, why))
	e.End(at)
	_ = wire.SendTo(socket, e.Bytes, nil, unix.MSG_DONTWAIT)
}

// Links are the connections of a server.
type Links[C any] struct {
	Poll *wire.Poll

	mu     sync.Mutex
	last   uint64 // number; 0 is none
	open   map[uint64]*Link[C]
	ending bool
}

// The low bit of a number in the poll, which says which of a link's descriptors it is of.
const (
	ofSocket  = 0
	ofProcess = 1
)

// New returns no connections.
func New[C any]() (*Links[C], error) {
	p, err := wire.NewPoll()
	if err != nil {
		return nil, err
	}
	return &Links[C]{Poll: p, open: map[uint64]*Link[C]{}}, nil
}

var (
	errEnding = errors.New("no more links are to be heard")
	// ErrTooMany says that there are as many connections as there may be.
	ErrTooMany = errors.New("there are as many links as there may be")
)

// Add begins to hear a link, unless there are too many, or no link is heard any more. The link owns the descriptors.
func (l *Links[C]) Add(k *Link[C], most int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return errEnding
	}
	if len(l.open) >= most {
		return ErrTooMany
	}
	// The kernel gives a descriptor's number to the next one as soon as it is closed. Links have other numbers.
	l.last++
	k.number = l.last
	if err := l.Poll.Add(k.Socket, k.number<<1|ofSocket); err != nil {
		return err
	}
	if k.Process >= 0 {
		_ = l.Poll.Add(k.Process, k.number<<1|ofProcess)
	}
	l.open[k.number] = k
	return nil
}

// Find returns the link of an event, nil where it has ended, and whether it is its process that has ended.
func (l *Links[C]) Find(number uint64) (k *Link[C], dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[number>>1], number&1 == ofProcess
}

// Deaf stops the poll from telling again that a link's process has ended. Where the link has ended, others have the
// numbers of its descriptors.
func (l *Links[C]) Deaf(k *Link[C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutate:always a death is told of whoever has the descriptor's number
	if l.open[k.number] == k {
		l.Poll.Remove(k.Process)
	}
}

// Leave stops hearing a link while a request of it takes long.
func (l *Links[C]) Leave(k *Link[C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.away = true
	l.Poll.Remove(k.Socket)
}

// Back hears a link again, and reports whether it does.
func (l *Links[C]) Back(k *Link[C]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending || l.Poll.Add(k.Socket, k.number<<1|ofSocket) != nil {
		return false
	}
	k.away = false
	return true
}

// Remove stops hearing a link for good.
func (l *Links[C]) Remove(k *Link[C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Poll.Remove(k.Socket)
	if k.Process >= 0 {
		l.Poll.Remove(k.Process)
	}
	delete(l.open, k.number)
}

// Finish stops hearing all links.
func (l *Links[C]) Finish() {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.Poll.Interrupt()
}

// Added is how many have been added.
func (l *Links[C]) Added() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Count is how many there are.
func (l *Links[C]) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Here returns the links of which no request takes long.
func (l *Links[C]) Here() (list []*Link[C]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.open {
		if !k.away {
			list = append(list, k)
		}
	}
	return list
}
