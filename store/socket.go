package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// transport carries packets both ways: all that the rest asks of a connection.
type transport interface {
	// send returns when a packet was handed over. The descriptors stay the caller's.
	send(packet []byte, descriptors []int) error
	// receive returns the next packet, in buffer, and descriptors that are the caller's; io.EOF
	// where there will be none.
	receive(buffer []byte) (n int, descriptors []int, err error)
}

// receiveFrom reads one packet of a socket. The kernel closes descriptors for which there is no
// room; the packet is refused then. soon is whether the answer is there, or about to come: then Go's
// scheduler is not told that the thread waits, which costs more than the call. Whom it wants to
// stop meanwhile it sends a signal, and with a time limit on the socket the call ends by that.
func receiveFrom(descriptor int, buffer, control []byte, flags int, soon bool) (n int, descriptors []int, err error) {
	n, controls, found, err := recvmsg(descriptor, buffer, control, flags|unix.MSG_CMSG_CLOEXEC, soon)
	if err != nil {
		return 0, nil, err
	}
	if controls > 0 {
		messages, err := unix.ParseSocketControlMessage(control[:controls])
		if err != nil {
			return 0, nil, &ProtocolError{err.Error()}
		}
		for i := range messages {
			if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
				descriptors = append(descriptors, rights...)
			}
		}
	}
	if found&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(descriptors)
		return 0, nil, &ProtocolError{fmt.Sprintf("a packet of more than %d bytes or %d descriptors", mostPacket, mostDescriptors)}
	}
	if n == 0 {
		closeAll(descriptors)
		return 0, nil, io.EOF
	}
	return n, descriptors, nil
}

// recvmsg is unix.Recvmsg without the sender's address, which nobody has here.
func recvmsg(descriptor int, buffer, control []byte, flags int, soon bool) (n, controls, found int, err error) {
	part := unix.Iovec{Base: unsafe.SliceData(buffer), Len: uint64(len(buffer))}
	message := unix.Msghdr{Iov: &part, Iovlen: 1, Control: unsafe.SliceData(control), Controllen: uint64(len(control))}
	call := unix.Syscall
	if soon {
		call = unix.RawSyscall
	}
	got, _, code := call(unix.SYS_RECVMSG, uintptr(descriptor), uintptr(unsafe.Pointer(&message)), uintptr(flags))
	if code != 0 {
		return 0, 0, 0, code
	}
	return int(got), int(message.Controllen), int(message.Flags), nil
}

func closeAll(descriptors []int) {
	for _, d := range descriptors {
		_ = unix.Close(d)
	}
}

func rights(descriptors []int) []byte {
	if len(descriptors) == 0 {
		return nil
	}
	return unix.UnixRights(descriptors...)
}

var controlBytes = unix.CmsgSpace(4 * mostDescriptors)

// waitingSocket is a transport whose calls wait in the thread, and in no other call than the one
// that is needed: recvmsg and sendmsg. Every now and then receive asks whether to go on.
type waitingSocket struct {
	descriptor int
	control    []byte
	stopped    func() error // may be nil
	hangUp     *atomic.Bool // may be nil
	skips      int          // how many calls are to sleep at once
	skipped    int          // and how many did so after the last one that asked in vain
}

// lookEvery is how long a thread that waits for a reply sleeps before it asks whether to go on.
const lookEvery = 20 * time.Millisecond

func dial(path string) (*waitingSocket, error) {
	descriptor, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	look := unix.NsecToTimeval(int64(lookEvery))
	if err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &look); err == nil {
		// A backlog that is full blocks; the server accepts before it does anything else.
		err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10})
	}
	for err == nil {
		if err = unix.Connect(descriptor, &unix.SockaddrUnix{Name: path}); err != unix.EINTR {
			break
		}
		err = nil
	}
	if err != nil {
		_ = unix.Close(descriptor)
		return nil, err
	}
	return &waitingSocket{descriptor: descriptor, control: make([]byte, controlBytes)}, nil
}

func (s *waitingSocket) send(packet []byte, descriptors []int) error {
	control := rights(descriptors)
	for {
		_, err := unix.SendmsgN(s.descriptor, packet, control, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// spinFor is how long a thread asks for a reply before it sleeps until there is one: to be woken can take longer
// than the whole request does.
const spinFor = 80 * time.Microsecond

// mostSkipped is how many replies are not asked for so, at most, after some did not come in that time.
const mostSkipped = 64

// spins is whether there are processors to spare for it.
var spins = runtime.NumCPU() >= 4

// spin is receive that waits for no longer than spinFor; unix.EAGAIN tells that nothing came.
func (s *waitingSocket) spin(buffer []byte) (n int, descriptors []int, err error) {
	if s.skips > 0 {
		s.skips--
		return 0, nil, unix.EAGAIN
	}
	for start := time.Now(); ; {
		n, descriptors, err = receiveFrom(s.descriptor, buffer, s.control, unix.MSG_DONTWAIT, true)
		if err != unix.EAGAIN {
			s.skipped = 0
			return n, descriptors, err
		}
		if time.Since(start) > spinFor {
			s.skipped = min(2*s.skipped+1, mostSkipped)
			s.skips = s.skipped
			return n, descriptors, err
		}
	}
}

func (s *waitingSocket) receive(buffer []byte) (n int, descriptors []int, err error) {
	if spins {
		if n, descriptors, err = s.spin(buffer); err != unix.EINTR && err != unix.EAGAIN {
			return n, descriptors, err
		}
	}
	for soon := true; ; soon = false {
		n, descriptors, err = receiveFrom(s.descriptor, buffer, s.control, 0, soon)
		if err != unix.EINTR && err != unix.EAGAIN {
			return n, descriptors, err
		}
		if s.hangUp != nil && s.hangUp.Load() {
			return 0, nil, ErrClosed
		}
		if s.stopped != nil {
			if err := s.stopped(); err != nil {
				return 0, nil, err
			}
		}
	}
}

func (s *waitingSocket) close() { _ = unix.Close(s.descriptor) }

// polledSocket is a transport whose calls wait in Go's poller, without a thread each.
type polledSocket struct {
	connection *os.File
	raw        syscall.RawConn
	control    []byte
	buffer     []byte
	n          int
	received   []int
	failed     error
	receiving  func(descriptor uintptr) bool
}

func newPolledSocket(connection *os.File) (*polledSocket, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &polledSocket{connection: connection, raw: raw, control: make([]byte, controlBytes)}
	s.receiving = func(descriptor uintptr) bool {
		s.n, s.received, s.failed = receiveFrom(int(descriptor), s.buffer, s.control, unix.MSG_DONTWAIT, true)
		return s.failed != unix.EAGAIN && s.failed != unix.EINTR
	}
	return s, nil
}

func (s *polledSocket) receive(buffer []byte) (n int, descriptors []int, err error) {
	s.buffer = buffer
	if err := s.raw.Read(s.receiving); err != nil {
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
		return 0, nil, err
	}
	return s.n, s.received, s.failed
}

// send does not wait: who does not read replies is not sent any more. A client that has one
// request at a time has room for its reply.
func (s *polledSocket) send(packet []byte, descriptors []int) error {
	control := rights(descriptors)
	var failed error
	err := s.raw.Control(func(descriptor uintptr) {
		for {
			_, failed = unix.SendmsgN(int(descriptor), packet, control, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			if failed != unix.EINTR {
				return
			}
		}
	})
	return errors.Join(err, failed)
}
