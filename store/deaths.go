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
	poll int
	wake int
	mu   sync.Mutex
	last uint64 // number; zero's is wake
	ones map[uint64]watched
	done chan struct{}
}

// watched is a connection, by a number of its own: a descriptor's is the next one's as soon as it is closed.
type watched struct {
	connection *os.File
	pidfd      int
}

func eventOf(number uint64) *unix.EpollEvent {
	return &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(uint32(number)), Pad: int32(uint32(number >> 32))}
}

func numberOf(e *unix.EpollEvent) uint64 { return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 }

const peerPidfd = 77 // SO_PEERPIDFD

func newDeaths() (*deaths, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, wake, eventOf(0))
	}
	if err != nil {
		if wake >= 0 {
			_ = unix.Close(wake)
		}
		_ = unix.Close(poll)
		return nil, err
	}
	d := &deaths{poll: poll, wake: wake, ones: map[uint64]watched{}, done: make(chan struct{})}
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
		for i := range events[:max(n, 0)] {
			number := numberOf(&events[i])
			if number == 0 {
				return
			}
			d.mu.Lock()
			dead, there := d.ones[number]
			if there {
				_ = unix.EpollCtl(d.poll, unix.EPOLL_CTL_DEL, dead.pidfd, nil)
			}
			d.mu.Unlock()
			if there {
				_ = dead.connection.Close()
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
	return d.add(connection, pidfd)
}

// add takes over a descriptor that can be read from when a connection's process has ended.
func (d *deaths) add(connection *os.File, pidfd int) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	number := d.last
	if unix.EpollCtl(d.poll, unix.EPOLL_CTL_ADD, pidfd, eventOf(number)) != nil {
		_ = unix.Close(pidfd)
		return nil
	}
	d.ones[number] = watched{connection, pidfd}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.ones, number)
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
