package server

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Link is a connection of the server's, and the transport of its conversation. Whoever answers its requests
// ends it; others can hang it up.
type Link struct {
	number       uint64
	Socket       int
	Process      int // a descriptor that can be read from when the process at the other end has ended, or -1
	away         bool
	Conversation *Conversation

	mu     sync.Mutex // of sending
	closed bool
}

// receive returns the packet that is there; unix.EAGAIN where there is none.
func (k *Link) receive(buffer, control []byte) (n int, descriptors []int, err error) {
	return wire.ReceiveFrom(k.Socket, buffer, control, unix.MSG_DONTWAIT, unix.RawSyscall)
}

// Send does not wait: who does not read replies is not sent any more. A client that has one
// request at a time has room for its reply.
func (k *Link) Send(packet []byte, descriptors []int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return io.EOF
	}
	err := wire.SendTo(k.Socket, packet, descriptors, unix.MSG_DONTWAIT)
	if err == unix.EPIPE {
		return nil // the client has ended: what it has asked for before is done still
	}
	return err
}

// Hang has whoever answers requests find that there are no more.
func (k *Link) Hang() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		_ = unix.Shutdown(k.Socket, unix.SHUT_RDWR)
	}
}

// mostUnread is how many requests are thrown away of a client that has broken a rule: if one were left, the kernel
// would have it read that the connection was reset, in place of why.
const mostUnread = 256

// discard throws away what a client has sent.
func discard(socket int) {
	buffer, control := make([]byte, 1), make([]byte, wire.ControlBytes)
	for range mostUnread {
		_, descriptors, err := wire.ReceiveFrom(socket, buffer, control, unix.MSG_DONTWAIT, unix.RawSyscall)
		wire.CloseAll(descriptors)
		if broken := (*protocol.ProtocolError)(nil); err != nil && err != wire.ErrShort && !errors.As(err, &broken) { // which a longer packet is
			return
		}
	}
}

// close lets go of the descriptors.
func (k *Link) close(why error) {
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

// processOf returns a descriptor that can be read from when the process at the other end has ended: a forked child
// that has the socket, too, keeps the connection for longer. It is -1 where the kernel has none (before Linux
// 6.5); then such a connection ends with the last of them.
func processOf(socket int) int {
	process, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, PeerPidfd)
	if err != nil {
		return -1
	}
	unix.CloseOnExec(process)
	wire.Record(process)
	return process
}

// Links are a server's connections.
type Links struct {
	Poll *wire.Poll

	Mu     sync.Mutex
	Last   uint64 // number; zero's is none's
	Open   map[uint64]*Link
	ending bool
}

// The numbers of a link's descriptors in the poll.
const (
	ofSocket  = 0
	ofProcess = 1
)

func NewLinks() (*Links, error) {
	p, err := wire.NewPoll()
	if err != nil {
		return nil, err
	}
	return &Links{Poll: p, Open: map[uint64]*Link{}}, nil
}

var (
	errEnding  = errors.New("no more links are to be heard")
	errTooMany = errors.New("there are as many links as there may be")
)

// Add has a link be heard, unless there are too many, or none are to be any more. The descriptors are its own.
func (l *Links) Add(k *Link, most int) error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.ending {
		return errEnding
	}
	if len(l.Open) >= most {
		return errTooMany
	}
	// A descriptor's number is the next one's as soon as it is closed, hence numbers of the links' own.
	l.Last++
	k.number = l.Last
	if err := l.Poll.Add(k.Socket, k.number<<1|ofSocket); err != nil {
		return err
	}
	if k.Process >= 0 {
		_ = l.Poll.Add(k.Process, k.number<<1|ofProcess)
	}
	l.Open[k.number] = k
	return nil
}

func (l *Links) find(number uint64) *Link {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Open[number>>1]
}

// deaf has a process's end not be told of again, unless somebody has ended the link, and its descriptors' numbers are others'.
func (l *Links) deaf(k *Link) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	//mutate:always a death is told of whoever has the descriptor's number
	if l.Open[k.number] == k {
		l.Poll.Remove(k.Process)
	}
}

// leave has a link not be heard while a request of it takes long.
func (l *Links) leave(k *Link) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	k.away = true
	l.Poll.Remove(k.Socket)
}

// back ends that, and reports whether the link is heard again.
func (l *Links) back(k *Link) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.ending || l.Poll.Add(k.Socket, k.number<<1|ofSocket) != nil {
		return false
	}
	k.away = false
	return true
}

func (l *Links) remove(k *Link) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Poll.Remove(k.Socket)
	if k.Process >= 0 {
		l.Poll.Remove(k.Process)
	}
	delete(l.Open, k.number)
}

// Finish has nobody be heard any more.
func (l *Links) Finish() {
	l.Mu.Lock()
	l.ending = true
	l.Mu.Unlock()
	l.Poll.Interrupt()
}

// Here returns the links of which no request takes long.
func (l *Links) Here() (list []*Link) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, k := range l.Open {
		if !k.away {
			list = append(list, k)
		}
	}
	return list
}
