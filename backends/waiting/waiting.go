// Package waiting polls until something is over. It notices that soon, and keeps no processor busy for long.
package waiting

import (
	"runtime"
	"syscall"
	"time"
)

const (
	// eager is how long there is no pause: most waits are short.
	eager = 250 * time.Microsecond
	// fraction bounds a pause by a part of the time waited so far, so that the delay is small beside the wait. shortest
	// is the shortest pause that is worth a sleep.
	fraction = 128
	shortest = 10 * time.Microsecond
)

// Poll asks until done says so, but no longer than patience, and reports whether it did.
func Poll(patience time.Duration, done func() (bool, error)) (bool, error) {
	return poll(&Pauses{}, patience, done)
}

func poll(p *Pauses, patience time.Duration, done func() (bool, error)) (bool, error) {
	defer p.End()
	for {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		if !p.Next(patience) {
			return false, nil
		}
	}
}

// Pauses are those between looks: none at first, then ever longer ones. The zero value begins
// with the first call of Next. A value is for one goroutine.
type Pauses struct {
	clock clock
	begun bool
}

// Next pauses, and reports true. When patience has passed since the first call it does not pause, and reports false.
// A pause does not last longer than patience, either.
func (p *Pauses) Next(patience time.Duration) bool {
	p.begin()
	waited := p.clock.waited()
	switch {
	case waited >= patience:
		return false
	case waited < eager:
		p.clock.yield()
	default:
		p.clock.sleep(min(max(waited/fraction, shortest), patience-waited))
	}
	return true
}

// Sleep pauses for that long. It is for callers that wait for several things, each since another moment.
func (p *Pauses) Sleep(pause time.Duration) {
	p.begin()
	p.clock.sleep(pause)
}

func (p *Pauses) begin() {
	if p.clock == nil {
		p.clock = &threadClock{}
	}
	if !p.begun {
		p.begun = true
		p.clock.start()
	}
}

// End must be called after the last Next or Sleep, on the same goroutine.
func (p *Pauses) End() {
	if p.begun {
		p.clock.end()
		p.begun = false
	}
}

type clock interface {
	start()
	waited() time.Duration
	yield()
	sleep(pause time.Duration)
	end()
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
		c.slack = 0
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
