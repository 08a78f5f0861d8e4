package bridge

import (
	"runtime"
	"syscall"
	"time"
)

const (
	// eager is how long poll asks without a pause: most waits are short.
	eager = 250 * time.Microsecond
	// fraction of the time waited is the longest pause, so that what has ended is noticed soon
	// beside what it took; shortest is the least that is worth a sleep.
	fraction = 128
	shortest = 10 * time.Microsecond
)

// poll asks whether something is done until it is, but no longer than patience.
func poll(patience time.Duration, done func() (bool, error)) (bool, error) {
	return pollBy(&threadClock{}, patience, done)
}

// clock is what poll tells the time by, and sleeps.
type clock interface {
	start()
	waited() time.Duration
	yield()
	sleep(pause time.Duration)
	end()
}

func pollBy(by clock, patience time.Duration, done func() (bool, error)) (bool, error) {
	by.start()
	defer by.end()
	for {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		waited := by.waited()
		switch {
		case waited >= patience:
			return false, nil
		case waited < eager:
			by.yield()
		default:
			by.sleep(min(max(waited/fraction, shortest), patience-waited))
		}
	}
}

// threadClock sleeps in the system's call: Go's own timers may be a millisecond late, since an
// idle process waits for them in epoll. Linux wakes a thread up to 50 microseconds late unless
// the thread asks for better, which is undone at the end: it is the user's.
type threadClock struct {
	begun time.Time
	slack uintptr // what the thread had; zero as long as it has it
}

func (c *threadClock) start() { c.begun = time.Now() }

func (c *threadClock) waited() time.Duration { return time.Since(c.begun) }

func (c *threadClock) yield() { runtime.Gosched() }

func (c *threadClock) sleep(pause time.Duration) {
	if c.slack == 0 {
		runtime.LockOSThread()
		c.slack = timerSlack()
		setTimerSlack(1)
	}
	span := syscall.NsecToTimespec(int64(pause))
	_ = syscall.Nanosleep(&span, nil) // a signal may end it sooner: it is asked again, then
}

func (c *threadClock) end() {
	if c.slack != 0 {
		setTimerSlack(c.slack)
		runtime.UnlockOSThread()
	}
}

const (
	setSlack = 29 // PR_SET_TIMERSLACK
	getSlack = 30 // PR_GET_TIMERSLACK
)

// timerSlack returns the calling thread's, in nanoseconds; it is never zero.
func timerSlack() uintptr {
	slack, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, getSlack, 0, 0)
	if errno != 0 {
		return 50_000 // what Linux begins with
	}
	return max(slack, 1)
}

func setTimerSlack(nanoseconds uintptr) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setSlack, nanoseconds, 0)
}
