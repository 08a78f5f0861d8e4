package store

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// transport carries replies: all that a conversation asks of a connection.
type transport interface {
	// send returns when a packet was handed over. The descriptors stay the caller's.
	send(packet []byte, descriptors []int) error
}

// receiveFrom reads one packet of a socket. The kernel closes descriptors for which there is no
// room; the packet is refused then. Where the process can open no more of them, the packet is returned with errShort. soon is whether the answer is there, or about to come: then Go's
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
		if found&unix.MSG_TRUNC == 0 && n > 0 && len(descriptors) < mostDescriptors {
			return n, nil, errShort
		}
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
	keep(&message, &part, buffer, control)
	if code != 0 {
		return 0, 0, 0, code
	}
	return int(got), int(message.Controllen), int(message.Flags), nil
}

// sendTo hands a packet over. soon is as in receiveFrom: whether the call waits for nothing.
func sendTo(descriptor int, packet []byte, descriptors []int, flags int, soon bool) error {
	part := unix.Iovec{Base: unsafe.SliceData(packet), Len: uint64(len(packet))}
	control := rights(descriptors)
	message := unix.Msghdr{Iov: &part, Iovlen: 1, Control: unsafe.SliceData(control), Controllen: uint64(len(control))}
	call := unix.Syscall
	if soon {
		call = unix.RawSyscall
	}
	for {
		_, _, code := call(unix.SYS_SENDMSG, uintptr(descriptor), uintptr(unsafe.Pointer(&message)), uintptr(flags|unix.MSG_NOSIGNAL))
		keep(&message, &part, packet, control)
		switch code {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return code
		}
	}
}

// keep has what a call was told the address of be there until then: the compiler knows of calls by name alone.
func keep(message *unix.Msghdr, part *unix.Iovec, packet, control []byte) {
	runtime.KeepAlive(message)
	runtime.KeepAlive(part)
	runtime.KeepAlive(packet)
	runtime.KeepAlive(control)
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
	peer       int // the server's process
	control    []byte
	stopped    func() error // may be nil
	hangUp     *atomic.Bool // may be nil
	spinner
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
		// A backlog that is full blocks, as long as nobody accepts.
		first := unix.NsecToTimeval(int64(answersWithin))
		err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &first)
	}
	for err == nil {
		if err = unix.Connect(descriptor, &unix.SockaddrUnix{Name: path}); err != unix.EINTR {
			break
		}
		err = nil
	}
	if err == unix.EAGAIN {
		err = fmt.Errorf("nobody has accepted the connection for %s", answersWithin)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10})
	}
	if err != nil {
		_ = unix.Close(descriptor)
		return nil, err
	}
	record(descriptor)
	return &waitingSocket{descriptor: descriptor, control: make([]byte, controlBytes)}, nil
}

func (s *waitingSocket) send(packet []byte, descriptors []int) error {
	// There is room but for what nobody takes.
	if err := sendTo(s.descriptor, packet, descriptors, unix.MSG_DONTWAIT, true); err != unix.EAGAIN {
		return err
	}
	return sendTo(s.descriptor, packet, descriptors, 0, false)
}

// spin is receive that waits for no longer than spinFor; unix.EAGAIN tells that nothing came.
func (s *waitingSocket) spin(buffer []byte) (n int, descriptors []int, err error) {
	err = unix.EAGAIN
	s.spinner.until(spinFor, func() bool {
		n, descriptors, err = receiveFrom(s.descriptor, buffer, s.control, unix.MSG_DONTWAIT, true)
		return err != unix.EAGAIN
	})
	return n, descriptors, err
}

func (s *waitingSocket) receive(buffer []byte) (n int, descriptors []int, err error) {
	if n, descriptors, err = s.spin(buffer); err != unix.EINTR && err != unix.EAGAIN {
		return n, descriptors, err
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

func (s *waitingSocket) close() { _ = closeRecorded(s.descriptor) }
