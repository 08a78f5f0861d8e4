package links

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Listener is a socket whose Accept waits in Go's poller. Package net has one too, and names, addresses and protocols
// besides, which would be a fifth of the library that Python loads.
type Listener struct {
	Descriptor int
	given      bool // by another program, which goes on listening
	file       *os.File
	raw        syscall.RawConn
}

// mostWaiting is how many clients wait to be accepted at a time.
const mostWaiting = 1024

// Listen binds a socket to a path, at which nothing may be.
func Listen(path string) (*Listener, error) {
	descriptor, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = os.NewSyscallError("bind", unix.Bind(descriptor, &unix.SockaddrUnix{Name: path})); err == nil {
		err = os.NewSyscallError("listen", unix.Listen(descriptor, mostWaiting))
	}
	if err != nil {
		_ = unix.Close(descriptor)
		return nil, err
	}
	return newListener(descriptor, path, false)
}

func newListener(descriptor int, path string, given bool) (*Listener, error) {
	wire.Record(descriptor)
	file := os.NewFile(uintptr(descriptor), path)
	raw, err := file.SyscallConn()
	if err != nil {
		wire.Unrecord(descriptor)
		_ = file.Close()
		return nil, err
	}
	return &Listener{descriptor, given, file, raw}, nil
}

// GivenPath is where a socket listens that another program has made, as by socket activation.
func GivenPath(descriptor int) (string, error) {
	refused := func(what string) (string, error) {
		accepted := "a UNIX socket of type SOCK_SEQPACKET that listens at a path"
		value := fmt.Sprintf("%d, %s", descriptor, what)
		return "", &protocol.ArgumentError{Argument: "Socket", Value: value, Accepted: accepted}
	}
	kind, err := unix.GetsockoptInt(descriptor, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return refused("no socket")
	}
	listens, err := unix.GetsockoptInt(descriptor, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	name, failed := unix.Getsockname(descriptor)
	at, local := name.(*unix.SockaddrUnix)
	switch {
	case failed != nil || !local || kind != unix.SOCK_SEQPACKET:
		return refused("another kind of socket")
	case err != nil || listens == 0:
		return refused("a socket that does not listen")
	}
	if err := wire.CheckPath(at.Name); err != nil {
		return refused("a socket without a path")
	}
	return at.Name, nil
}

// ListenGiven takes such a socket.
func ListenGiven(descriptor int, path string) (*Listener, error) {
	unix.CloseOnExec(descriptor)
	if err := unix.SetNonblock(descriptor, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return newListener(descriptor, path, true)
}

// Accept returns the next client's connection, which does not wait.
func (l *Listener) Accept() (int, error) {
	descriptor, failed := -1, error(nil)
	err := l.raw.Read(func(listening uintptr) bool {
		descriptor, _, failed = unix.Accept4(int(listening), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return failed != unix.EAGAIN && failed != unix.EINTR
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return -1, os.NewSyscallError("accept4", err)
	}
	return descriptor, nil
}

// AcceptNow is Accept that waits for nobody.
func (l *Listener) AcceptNow() (int, error) {
	descriptor, failed := -1, error(nil)
	if err := l.raw.Control(func(listening uintptr) {
		descriptor, _, failed = unix.Accept4(int(listening), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	}); err != nil {
		return -1, err
	}
	return descriptor, failed
}

// Close ends it, and an Accept that waits. The path stays. Clients are refused although another process has a copy of
// the descriptor, in whose backlog they would wait for ever. The program that has given the socket starts the next
// server.
func (l *Listener) Close() error {
	//mutate:replace a server's end closes the socket that its service manager goes on listening at
	//mutate:with !l.given => l.file != nil
	if !l.given {
		_ = unix.Shutdown(l.Descriptor, unix.SHUT_RDWR)
	}
	wire.Unrecord(l.Descriptor)
	return l.file.Close()
}
