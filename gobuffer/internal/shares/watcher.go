package shares

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lease is memory that other processes may have. Its watcher alone uses holders.
type lease struct {
	of      *leases // with id, slot and generation set by watcher.lends
	id      id
	end     int // the end that stays here
	holders map[int32]*holder
	left    atomic.Int32 // who had the memory when nobody could get it any more, and has not ended

	slot       int // its word in lanes, 0 if it has none
	generation uint64
}

// holder is a process that has memory open, by the number that this one knows it by, or 0.
type holder struct {
	times   int
	process int // a descriptor that tells when it has ended; -1 if nothing can
}

// watcher waits for what happens to all leases of the process in one goroutine and one epoll instance, which
// Go's poller watches: a lease takes no thread, and who lends wakes none.
type watcher struct {
	mu      sync.Mutex
	poll    int // the epoll instance plus one, 0 before there is one
	watched map[int]watched
}

// watched is a lease's end, or a process of which a lease waits for the end, or that a lane is of.
type watched struct {
	lease   *lease
	process bool
	lane    *readLane
}

var leaseWatcher watcher

// mostHeard is how much is read of one lease before others have their turn.
const mostHeard = 64

// watch begins to watch a lease, whose end is the watcher's unless there is an error.
func (w *watcher) watch(l *lease) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.poll == 0 {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.add(l.end, watched{lease: l})
}

// lends says what a lease is for that is watched, of which nobody has the other end yet.
func (w *watcher) lends(made *lease, of *leases, id id, note note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	made.of, made.id, made.slot, made.generation = of, id, note.slot, note.generation
}

// begin is called with the lock held.
func (w *watcher) begin() error {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(poll, true) // or Go's poller would not watch it
	}
	var polled syscall.RawConn
	if err == nil {
		polled, err = os.NewFile(uintptr(poll), "leases").SyscallConn()
	}
	if err != nil {
		return err
	}
	w.poll, w.watched = poll+1, map[int]watched{}
	go w.run(polled)
	return nil
}

// add is called with the lock held.
func (w *watcher) add(descriptor int, what watched) error {
	w.watched[descriptor] = what
	err := unix.EpollCtl(w.poll-1, unix.EPOLL_CTL_ADD, descriptor,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(descriptor)})
	if err != nil {
		delete(w.watched, descriptor)
	}
	return err
}

// forget closes a descriptor that was watched. A forked child may have it, too, so that closing it is not enough.
func (w *watcher) forget(descriptor int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, descriptor)
	_ = unix.EpollCtl(w.poll-1, unix.EPOLL_CTL_DEL, descriptor, nil)
	_ = unix.Close(descriptor)
}

func (w *watcher) run(polled syscall.RawConn) {
	var events [64]unix.EpollEvent
	for {
		n := 0
		failed := polled.Read(func(poll uintptr) bool {
			n, _ = unix.EpollWait(int(poll), events[:], 0)
			return n > 0
		})
		if failed != nil {
			n, _ = unix.EpollWait(w.poll-1, events[:], -1)
		}
		for _, event := range events[:max(n, 0)] {
			w.happened(int(event.Fd))
		}
	}
}

func (w *watcher) happened(descriptor int) {
	w.mu.Lock()
	found := w.watched[descriptor]
	w.mu.Unlock()
	l := found.lease
	switch {
	case found.lane != nil:
		found.lane.over()
	case l == nil:
	case found.process:
		w.forget(descriptor)
		l.done()
	case !l.hear():
		w.forget(descriptor)
		w.wait(l)
	}
}

// wait waits until the processes have ended that did not let go.
func (w *watcher) wait(l *lease) {
	//mutate:replace memory that was lent goes before the processes have ended that have it
	//mutate:with int32(len(l.holders)) + 1 => 1
	l.left.Store(int32(len(l.holders)) + 1)
	for _, each := range l.holders {
		if each.process < 0 {
			time.AfterFunc(afterDeath, l.done)
			continue
		}
		w.mu.Lock()
		err := w.add(each.process, watched{lease: l, process: true})
		w.mu.Unlock()
		if err != nil {
			each.close()
			time.AfterFunc(afterDeath, l.done)
		}
	}
	l.holders = nil
	if l.slot != 0 {
		for _, each := range l.of.lanes {
			//mutate:replace what a lane says does not keep memory until its process has ended
			//mutate:with each.has(l) => each.has(l) && l.slot < 0
			if each.has(l) {
				l.left.Add(1)
				each.waiting = append(each.waiting, l)
			}
		}
	}
	l.done()
}

// done is told that one more does not have the memory any more. The last one gives it back, which may take its
// time, so that other leases do not wait for it.
func (l *lease) done() {
	if l.left.Add(-1) == 0 {
		go l.of.letGo(l.id)
	}
}

// hear reads what has been said on the lease's end, and reports whether there is more to come.
func (l *lease) hear() bool {
	var said [1]byte
	var room [64]byte
	for range mostHeard {
		n, size, _, _, err := unix.Recvmsg(l.end, said[:], room[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return true
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNRESET):
			// ECONNRESET: the last one has not read everything, and the end comes next.
		case err != nil || (n == 0 && size == 0): // an empty message names its sender, an end nobody
			return false
		default:
			number, files := sender(room[:size])
			if n > 0 {
				l.note(number, said[0] == leaseOpens)
			}
			l.read(number, files)
		}
	}
	return true
}

// read begins to read the lane that came with a message.
func (l *lease) read(number int32, files []int) {
	if len(files) == 1 && l.of.read(number, files[0]) == nil {
		return
	}
	_ = Close(files)
}

// sender is whom the kernel names, and what descriptors he has sent.
func sender(said []byte) (number int32, files []int) {
	messages, err := unix.ParseSocketControlMessage(said)
	if err != nil {
		return 0, nil
	}
	for i := range messages {
		if who, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			number = who.Pid
		}
		if found, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, found...)
		}
	}
	return number, files
}

func (l *lease) note(number int32, opens bool) {
	known := l.holders[number]
	if opens && known == nil {
		known = &holder{process: -1}
		if number > 0 {
			fd, err := unix.PidfdOpen(int(number), unix.PIDFD_NONBLOCK)
			if errors.Is(err, unix.ESRCH) {
				return // it has ended
			}
			if err == nil {
				known.process = fd
			}
		}
		if l.holders == nil {
			l.holders = map[int32]*holder{}
		}
		l.holders[number] = known
	}
	switch {
	case opens:
		known.times++
	case known != nil:
		//mutate:replace memory that was lent stays where a process has let go of it
		//mutate:with known.times <= 0 => known.times < 0
		if known.times--; known.times <= 0 {
			known.close()
			delete(l.holders, number)
		}
	}
}

func (h *holder) close() {
	if h.process >= 0 {
		_ = unix.Close(h.process)
	}
}
