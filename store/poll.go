package store

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poll tells which descriptors can be read from, by numbers of their owners'. Go's own poller would do, and
// asks about writing as well: each reply that a client takes would wake the server for nothing.
type poll struct {
	descriptor int
	wake       int // an eventfd, of number 0
}

func newPoll() (*poll, error) {
	descriptor, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(descriptor)
		return nil, os.NewSyscallError("eventfd", err)
	}
	record(descriptor)
	record(wake)
	p := &poll{descriptor, wake}
	if err := p.add(wake, 0); err != nil {
		_ = p.close()
		return nil, err
	}
	return p, nil
}

// add has a descriptor be told of, again and again as long as there is something to read.
func (p *poll) add(descriptor int, number uint64) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(uint32(number)), Pad: int32(uint32(number >> 32))}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.descriptor, unix.EPOLL_CTL_ADD, descriptor, &event))
}

// remove ends that, where it had begun.
func (p *poll) remove(descriptor int) {
	_ = unix.EpollCtl(p.descriptor, unix.EPOLL_CTL_DEL, descriptor, nil)
}

func numberOf(e *unix.EpollEvent) uint64 { return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 }

// wait returns how many events there are, at least one, for which it asks for a while as s does.
func (p *poll) wait(events []unix.EpollEvent, s *spinner) (n int, err error) {
	for {
		// Where some are there already, Go's scheduler is not told that the thread might wait.
		if n, err = epollNow(p.descriptor, events); n == 0 && err == nil {
			s.until(leaderSpinsFor, func() bool {
				n, err = epollNow(p.descriptor, events)
				return n > 0 || err != nil
			})
		}
		if n == 0 && err == nil {
			n, err = unix.EpollWait(p.descriptor, events, -1)
		}
		if n > 0 || (err != nil && err != unix.EINTR) {
			return n, os.NewSyscallError("epoll_wait", err)
		}
	}
}

// interrupt has wait tell of number 0, from now on.
func (p *poll) interrupt() { _, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (p *poll) close() error {
	_ = closeRecorded(p.wake)
	return os.NewSyscallError("close", closeRecorded(p.descriptor))
}

// epollNow is unix.EpollWait that waits for nothing.
func epollNow(descriptor int, events []unix.EpollEvent) (n int, err error) {
	got, _, code := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(descriptor), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if code != 0 {
		return 0, code
	}
	return int(got), nil
}
