package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// WhenHungUp calls f, on a goroutine, when the other end of a socket is closed. end stops that. Without a
// descriptor for it, f is not called. The goroutine waits in Go's poller, which needs no thread; the socket itself
// cannot be there, since it blocks.
func WhenHungUp(socket int, f func()) (end func()) {
	number, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return func() {}
	}
	event := unix.EpollEvent{Events: unix.EPOLLRDHUP}
	err = unix.EpollCtl(number, unix.EPOLL_CTL_ADD, socket, &event)
	if err == nil {
		err = unix.SetNonblock(number, true) // os.NewFile asks for that
	}
	if err != nil {
		_ = unix.Close(number)
		return func() {}
	}
	file := os.NewFile(uintptr(number), "hang-up")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return func() {}
	}
	go func() {
		err := raw.Read(func(number uintptr) bool {
			var events [1]unix.EpollEvent
			n, err := unix.EpollWait(int(number), events[:], 0)
			return n > 0 || err != nil && err != unix.EINTR
		})
		if err == nil {
			f()
		}
	}()
	Record(number)
	return func() {
		Unrecord(number)
		_ = file.Close()
	}
}
