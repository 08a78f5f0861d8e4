package store

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// deaths ends connections whose process has died: a forked child that has the socket, too, keeps
// it open for longer. Where the kernel has no pidfd of a peer (before Linux 6.5), such a connection
// ends with the last of them.
type deaths struct {
	poll  int
	wake  int
	mu    sync.Mutex
	conns map[int32]*os.File // by pidfd
	done  chan struct{}
}

const peerPidfd = 77 // SO_PEERPIDFD

func newDeaths() (*deaths, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	}
	if err != nil {
		_ = unix.Close(poll)
		return nil, err
	}
	d := &deaths{poll: poll, wake: wake, conns: map[int32]*os.File{}, done: make(chan struct{})}
	go d.run()
	return d, nil
}

func (d *deaths) run() {
	defer close(d.done)
	events := make([]unix.EpollEvent, 16)
	for {
		n, err := unix.EpollWait(d.poll, events, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, event := range events[:max(n, 0)] {
			if int(event.Fd) == d.wake {
				return
			}
			d.mu.Lock()
			connection := d.conns[event.Fd]
			_ = unix.EpollCtl(d.poll, unix.EPOLL_CTL_DEL, int(event.Fd), nil)
			d.mu.Unlock()
			if connection != nil {
				_ = connection.Close()
			}
		}
	}
}

// watch has the connection closed when its process ends, until the result is called. It is nil
// where that cannot be told.
func (d *deaths) watch(connection *os.File, raw syscall.RawConn) (stop func()) {
	pidfd := -1
	_ = raw.Control(func(descriptor uintptr) {
		if got, err := unix.GetsockoptInt(int(descriptor), unix.SOL_SOCKET, peerPidfd); err == nil {
			pidfd = got
		}
	})
	if pidfd < 0 {
		return nil
	}
	unix.CloseOnExec(pidfd)
	d.mu.Lock()
	defer d.mu.Unlock()
	if unix.EpollCtl(d.poll, unix.EPOLL_CTL_ADD, pidfd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(pidfd)}) != nil {
		_ = unix.Close(pidfd)
		return nil
	}
	d.conns[int32(pidfd)] = connection
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.conns, int32(pidfd))
		_ = unix.EpollCtl(d.poll, unix.EPOLL_CTL_DEL, pidfd, nil)
		_ = unix.Close(pidfd)
	}
}

func (d *deaths) close() {
	_, _ = unix.Write(d.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-d.done
	_ = unix.Close(d.poll)
	_ = unix.Close(d.wake)
}
