package wire

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Poll tells which descriptors can be read from, by numbers of their owners'. Go's own poller would do, and
// asks about writing as well: each reply that a client takes would wake the server for nothing.
type Poll struct {
	Descriptor int
	Wake       int // an eventfd, of number 0
}

func NewPoll() (*Poll, error) {
	descriptor, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(descriptor)
		return nil, os.NewSyscallError("eventfd", err)
	}
	Record(descriptor)
	Record(wake)
	p := &Poll{descriptor, wake}
	if err := p.Add(wake, 0); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// Add has Wait tell of a descriptor as long as there is something to read.
func (p *Poll) Add(descriptor int, number uint64) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(uint32(number)), Pad: int32(uint32(number >> 32))}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.Descriptor, unix.EPOLL_CTL_ADD, descriptor, &event))
}

// Remove ends that, where it had begun.
func (p *Poll) Remove(descriptor int) {
	_ = unix.EpollCtl(p.Descriptor, unix.EPOLL_CTL_DEL, descriptor, nil)
}

func NumberOf(e *unix.EpollEvent) uint64 { return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32 }

// Wait returns how many events there are, at least one, for which it asks for a while as s does.
func (p *Poll) Wait(events []unix.EpollEvent, s *Spinner) (n int, err error) {
	for {
		// Where some are there already, Go's scheduler is not told that the thread might wait.
		if n, err = epollNow(p.Descriptor, events); n == 0 && err == nil {
			s.until(leaderSpinsFor, func() bool {
				n, err = epollNow(p.Descriptor, events)
				return n > 0 || err != nil
			})
		}
		if n == 0 && err == nil {
			n, err = unix.EpollWait(p.Descriptor, events, -1)
		}
		if n > 0 || (err != nil && err != unix.EINTR) {
			return n, os.NewSyscallError("epoll_wait", err)
		}
	}
}

// Interrupt has Wait tell of number 0, from now on.
func (p *Poll) Interrupt() { _, _ = unix.Write(p.Wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (p *Poll) Close() error {
	_ = CloseRecorded(p.Wake)
	return os.NewSyscallError("close", CloseRecorded(p.Descriptor))
}

// epollNow is unix.EpollWait that waits for nothing.
func epollNow(descriptor int, events []unix.EpollEvent) (n int, err error) {
	got, _, code := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(descriptor),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if code != 0 {
		return 0, code
	}
	return int(got), nil
}
