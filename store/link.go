package store

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"hamr/store/internal/wire"
)

// link is a connection of the server's, and the transport of its conversation. Whoever answers its requests
// ends it; others can hang it up.
type link struct {
	number       uint64
	socket       int
	process      int // a descriptor that can be read from when the process at the other end has ended, or -1
	away         bool
	conversation *conversation

	mu     sync.Mutex // of sending
	closed bool
}

// receive returns the packet that is there; unix.EAGAIN where there is none.
func (k *link) receive(buffer, control []byte) (n int, descriptors []int, err error) {
	return wire.ReceiveFrom(k.socket, buffer, control, unix.MSG_DONTWAIT, unix.RawSyscall)
}

// Send does not wait: who does not read replies is not sent any more. A client that has one
// request at a time has room for its reply.
func (k *link) Send(packet []byte, descriptors []int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return io.EOF
	}
	err := wire.SendTo(k.socket, packet, descriptors, unix.MSG_DONTWAIT)
	if err == unix.EPIPE {
		return nil // the client has ended: what it has asked for before is done still
	}
	return err
}

// hang has whoever answers requests find that there are no more.
func (k *link) hang() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		_ = unix.Shutdown(k.socket, unix.SHUT_RDWR)
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
		if broken := (*ProtocolError)(nil); err != nil && err != wire.ErrShort && !errors.As(err, &broken) { // which a longer packet is
			return
		}
	}
}

// close lets go of the descriptors.
func (k *link) close(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if broken := (*ProtocolError)(nil); errors.As(why, &broken) {
		discard(k.socket)
	}
	_ = unix.Shutdown(k.socket, unix.SHUT_RDWR) // a forked child may have the descriptor, too
	_ = wire.CloseRecorded(k.socket)
	if k.process >= 0 {
		_ = wire.CloseRecorded(k.process)
	}
}

const peerPidfd = 77 // SO_PEERPIDFD

// processOf returns a descriptor that can be read from when the process at the other end has ended: a forked child
// that has the socket, too, keeps the connection for longer. It is -1 where the kernel has none (before Linux
// 6.5); then such a connection ends with the last of them.
func processOf(socket int) int {
	process, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, peerPidfd)
	if err != nil {
		return -1
	}
	unix.CloseOnExec(process)
	wire.Record(process)
	return process
}

// links are a server's connections.
type links struct {
	poll *wire.Poll

	mu     sync.Mutex
	last   uint64 // number; zero's is none's
	open   map[uint64]*link
	ending bool
}

// The numbers of a link's descriptors in the poll.
const (
	ofSocket  = 0
	ofProcess = 1
)

func newLinks() (*links, error) {
	p, err := wire.NewPoll()
	if err != nil {
		return nil, err
	}
	return &links{poll: p, open: map[uint64]*link{}}, nil
}

var (
	errEnding  = errors.New("no more links are to be heard")
	errTooMany = errors.New("there are as many links as there may be")
)

// add has a link be heard, unless there are too many, or none are to be any more. The descriptors are its own.
func (l *links) add(k *link, most int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return errEnding
	}
	if len(l.open) >= most {
		return errTooMany
	}
	// A descriptor's number is the next one's as soon as it is closed, hence numbers of the links' own.
	l.last++
	k.number = l.last
	if err := l.poll.Add(k.socket, k.number<<1|ofSocket); err != nil {
		return err
	}
	if k.process >= 0 {
		_ = l.poll.Add(k.process, k.number<<1|ofProcess)
	}
	l.open[k.number] = k
	return nil
}

func (l *links) find(number uint64) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[number>>1]
}

// deaf has a process's end not be told of again, unless somebody has ended the link, and its descriptors' numbers are others'.
func (l *links) deaf(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	//mutate:always a death is told of whoever has the descriptor's number
	if l.open[k.number] == k {
		l.poll.Remove(k.process)
	}
}

// leave has a link not be heard while a request of it takes long.
func (l *links) leave(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.away = true
	l.poll.Remove(k.socket)
}

// back ends that, and reports whether the link is heard again.
func (l *links) back(k *link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending || l.poll.Add(k.socket, k.number<<1|ofSocket) != nil {
		return false
	}
	k.away = false
	return true
}

func (l *links) remove(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poll.Remove(k.socket)
	if k.process >= 0 {
		l.poll.Remove(k.process)
	}
	delete(l.open, k.number)
}

// finish has nobody be heard any more.
func (l *links) finish() {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.poll.Interrupt()
}

// here returns the links of which no request takes long.
func (l *links) here() (list []*link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.open {
		if !k.away {
			list = append(list, k)
		}
	}
	return list
}
