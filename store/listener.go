package store

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listener is a socket whose Accept waits in Go's poller. Package net has one too, and names,
// addresses and protocols besides, which would be a fifth of the library that Python loads.
type listener struct {
	descriptor int
	file       *os.File
	raw        syscall.RawConn
}

// mostWaiting is how many clients wait to be accepted at a time.
const mostWaiting = 1024

// listen binds a socket to a path, at which nothing may be.
func listen(path string) (*listener, error) {
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
	record(descriptor)
	file := os.NewFile(uintptr(descriptor), path)
	raw, err := file.SyscallConn()
	if err != nil {
		unrecord(descriptor)
		_ = file.Close()
		return nil, err
	}
	return &listener{descriptor, file, raw}, nil
}

// accept returns the next client's connection, which does not wait.
func (l *listener) accept() (int, error) {
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

// acceptNow is accept that waits for nobody.
func (l *listener) acceptNow() (int, error) {
	descriptor, failed := -1, error(nil)
	if err := l.raw.Control(func(listening uintptr) {
		descriptor, _, failed = unix.Accept4(int(listening), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	}); err != nil {
		return -1, err
	}
	return descriptor, failed
}

// close ends it, and an accept that waits. The path stays. Clients are refused though another process has a copy of
// the descriptor, in whose backlog they would wait for ever.
func (l *listener) close() error {
	_ = unix.Shutdown(l.descriptor, unix.SHUT_RDWR)
	unrecord(l.descriptor)
	return l.file.Close()
}
