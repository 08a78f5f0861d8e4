package shares

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// spareLease is one whose sockets were made, and are watched, before there is anything to lend: that is a third of
// what Share takes after a pause.
var spareLease struct {
	mu    sync.Mutex
	lease *lease
	end   int // which goes with a frame
	ends  [2]atomic.Int32
}

// SpareEnds is documented as gobuffer.SpareEnds.
func SpareEnds() *[2]atomic.Int32 { return &spareLease.ends }

// Prepare is documented as gobuffer.PrepareShare.
func Prepare() {
	s := &spareLease
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return
	}
	made, end, err := newLease()
	if err != nil {
		return
	}
	s.lease, s.end = made, end
	s.ends[0].Store(int32(made.end) + 1)
	s.ends[1].Store(int32(end) + 1)
}

// takeLease returns a lease that is watched and lends nothing yet, and the end that goes with a frame.
func takeLease() (*lease, int, error) {
	s := &spareLease
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return newLease()
	}
	made := s.lease
	//mutate:remove a lease that was made ahead is lent twice
	s.lease = nil
	//mutate:remove forked children close a lease that was made ahead and is lent
	s.ends[0].Store(0)
	//mutate:also remove
	s.ends[1].Store(0)
	return made, s.end, nil
}

func newLease() (*lease, int, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, err
	}
	made := &lease{end: ends[0]}
	err = unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	if err == nil {
		err = leaseWatcher.watch(made)
	}
	if err != nil {
		return nil, -1, errors.Join(err, Close(ends[:]))
	}
	return made, ends[1], nil
}
