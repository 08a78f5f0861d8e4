package wire

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
)

// AnswersWithin is how long a connection waits for its first answer: a process that has a dead server's socket lets
// others connect, and reads nothing.
const AnswersWithin = time.Second

// Transport carries replies: all that a conversation asks of a connection.
type Transport interface {
	// Send returns when a packet was handed over. The descriptors stay the caller's.
	Send(packet []byte, descriptors []int) error
}

// systemCall is unix.Syscall or unix.RawSyscall. A thread in a raw call keeps its processor, and no other thread may
// run Go code in its place: a call that may block is not to be one.
type systemCall = func(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, code syscall.Errno)

// ReceiveFrom reads one packet of a socket. The kernel closes descriptors for which there is no
// room; the packet is refused then. Where the process can open no more of them, the packet is returned with ErrShort.
func ReceiveFrom(descriptor int, buffer, control []byte, flags int, call systemCall) (
	n int, descriptors []int, err error,
) {
	n, controls, found, err := recvmsg(descriptor, buffer, control, flags|unix.MSG_CMSG_CLOEXEC, call)
	if err != nil {
		return 0, nil, err
	}
	if controls > 0 {
		messages, err := unix.ParseSocketControlMessage(control[:controls])
		if err != nil {
			return 0, nil, &protocol.ProtocolError{Problem: err.Error()}
		}
		for i := range messages {
			if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
				descriptors = append(descriptors, rights...)
			}
		}
	}
	if found&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		CloseAll(descriptors)
		if found&unix.MSG_TRUNC == 0 && n > 0 && len(descriptors) < protocol.MostDescriptors {
			return n, nil, ErrShort
		}
		return 0, nil, &protocol.ProtocolError{Problem: fmt.Sprintf("a packet of more than %d bytes or %d descriptors",
			protocol.MostPacket, protocol.MostDescriptors)}
	}
	if n == 0 {
		CloseAll(descriptors)
		return 0, nil, io.EOF
	}
	return n, descriptors, nil
}

// recvmsg is unix.Recvmsg without the sender's address, which nobody has here.
func recvmsg(descriptor int, buffer, control []byte, flags int, call systemCall) (n, controls, found int, err error) {
	part := unix.Iovec{Base: unsafe.SliceData(buffer), Len: uint64(len(buffer))}
	message := unix.Msghdr{Iov: &part, Iovlen: 1, Control: unsafe.SliceData(control), Controllen: uint64(len(control))}
	got, _, code := call(unix.SYS_RECVMSG, uintptr(descriptor), uintptr(unsafe.Pointer(&message)), uintptr(flags))
	keep(&message, &part, buffer, control)
	if code != 0 {
		return 0, 0, 0, code
	}
	return int(got), int(message.Controllen), int(message.Flags), nil
}

// SendTo hands a packet over.
func SendTo(descriptor int, packet []byte, descriptors []int, flags int) error {
	part := unix.Iovec{Base: unsafe.SliceData(packet), Len: uint64(len(packet))}
	control := rights(descriptors)
	message := unix.Msghdr{Iov: &part, Iovlen: 1, Control: unsafe.SliceData(control), Controllen: uint64(len(control))}
	call := systemCall(unix.Syscall)
	if flags&unix.MSG_DONTWAIT != 0 {
		call = unix.RawSyscall
	}
	for {
		_, _, code := call(unix.SYS_SENDMSG, uintptr(descriptor), uintptr(unsafe.Pointer(&message)),
			uintptr(flags|unix.MSG_NOSIGNAL))
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

// keep keeps alive what a call has the address of: the compiler knows only the names of calls.
func keep(message *unix.Msghdr, part *unix.Iovec, packet, control []byte) {
	runtime.KeepAlive(message)
	runtime.KeepAlive(part)
	runtime.KeepAlive(packet)
	runtime.KeepAlive(control)
}

func CloseAll(descriptors []int) {
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

var ControlBytes = unix.CmsgSpace(4 * protocol.MostDescriptors)

// WaitingSocket is a transport whose calls wait in the thread. Every now and then Receive asks whether to go on.
type WaitingSocket struct {
	Descriptor int
	Peer       int // the server's process
	Control    []byte
	Stopped    func() error // may be nil
	HangUp     *atomic.Bool // may be nil
	Patient    bool         // whether replies may take long, as those to requests that wait for something
	Keeps      bool         // whether Go has processors of which the thread may keep one for a moment
	Spinner
}

const (
	// LookEvery is how long a thread that waits for a reply sleeps before it asks whether to go on.
	LookEvery = 20 * time.Millisecond
	// keepFor is how long a thread at most waits for a reply with its processor.
	keepFor = time.Millisecond
)

var (
	// Keeping is whether a thread waits with its processor: no second one may.
	Keeping atomic.Bool
	// ServersHere is how many servers of this process need a processor to answer.
	ServersHere atomic.Int32
)

func Dial(path string) (*WaitingSocket, error) {
	descriptor, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	soon := unix.NsecToTimeval(int64(keepFor))
	if err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &soon); err == nil {
		// A backlog that is full blocks, as long as nobody accepts.
		first := unix.NsecToTimeval(int64(AnswersWithin))
		err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &first)
	}
	for err == nil {
		if err = unix.Connect(descriptor, &unix.SockaddrUnix{Name: path}); err != unix.EINTR {
			break
		}
		err = nil
	}
	if err == unix.EAGAIN {
		err = fmt.Errorf("nobody has accepted the connection for %s", AnswersWithin)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(descriptor, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 10})
	}
	if err != nil {
		_ = unix.Close(descriptor)
		return nil, err
	}
	Record(descriptor)
	keeps := runtime.GOMAXPROCS(0) > 1
	return &WaitingSocket{Descriptor: descriptor, Control: make([]byte, ControlBytes), Keeps: keeps}, nil
}

func (s *WaitingSocket) Send(packet []byte, descriptors []int) error {
	// There is room but for what nobody takes.
	if err := SendTo(s.Descriptor, packet, descriptors, unix.MSG_DONTWAIT); err != unix.EAGAIN {
		return err
	}
	return SendTo(s.Descriptor, packet, descriptors, 0)
}

// spin is Receive that waits for no longer than spinFor; unix.EAGAIN tells that nothing came.
func (s *WaitingSocket) spin(buffer []byte) (n int, descriptors []int, err error) {
	err = unix.EAGAIN
	s.Spinner.until(spinFor, func() bool {
		n, descriptors, err = ReceiveFrom(s.Descriptor, buffer, s.Control, unix.MSG_DONTWAIT, unix.RawSyscall)
		return err != unix.EAGAIN
	})
	return n, descriptors, err
}

func (s *WaitingSocket) Receive(buffer []byte) (n int, descriptors []int, err error) {
	if n, descriptors, err = s.spin(buffer); !isAgain(err) {
		return n, descriptors, err
	}
	if n, descriptors, err = s.ReceiveSoon(buffer); !isAgain(err) {
		return n, descriptors, err
	}
	for {
		waitReadable(s.Descriptor, LookEvery)
		n, descriptors, err = ReceiveFrom(s.Descriptor, buffer, s.Control, unix.MSG_DONTWAIT, unix.RawSyscall)
		if !isAgain(err) {
			return n, descriptors, err
		}
		if s.HangUp != nil && s.HangUp.Load() {
			return 0, nil, protocol.ErrClosed
		}
		if s.Stopped != nil {
			if err := s.Stopped(); err != nil {
				return 0, nil, err
			}
		}
	}
}

// ReceiveSoon waits for keepFor, as the socket's time limit says. Go's scheduler follows each call that it is told
// of for a while, which takes more of a processor than the call. So one thread at a time does not tell it where the
// reply is another process's, and is expected soon.
func (s *WaitingSocket) ReceiveSoon(buffer []byte) (n int, descriptors []int, err error) {
	//mutate:replace who waits for something keeps a processor
	//mutate:with s.Patient => false
	//mutate:replace a thread keeps a processor that a server of this process needs
	//mutate:with ServersHere.Load() > 0 => false
	if s.Patient || !s.Keeps || ServersHere.Load() > 0 || !Keeping.CompareAndSwap(false, true) {
		return ReceiveFrom(s.Descriptor, buffer, s.Control, 0, unix.Syscall)
	}
	defer Keeping.Store(false)
	return ReceiveFrom(s.Descriptor, buffer, s.Control, 0, unix.RawSyscall)
}

func isAgain(err error) bool { return err == unix.EAGAIN || err == unix.EINTR }

// waitReadable returns when there is something to read, or so much time has passed, or a signal came.
func waitReadable(descriptor int, most time.Duration) {
	time := unix.NsecToTimespec(int64(most))
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}, &time, nil)
}

func (s *WaitingSocket) Close() { _ = CloseRecorded(s.Descriptor) }
