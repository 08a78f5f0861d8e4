package gobuffer

import (
	"slices"
	"sync"
)

// underway counts what has begun and not ended, for who waits for that. Nobody who begins waits, as with a lock:
// who is in the middle of one may begin another.
type underway struct {
	mutex sync.Mutex // of what follows
	begun uint64
	left  int // how many of those have not ended
	waits []*underwayWait
}

// underwayWait is somebody who waits for what had begun before.
type underwayWait struct {
	begun uint64
	left  int // how many of those have not ended
	over  chan struct{}
}

// begin returns the number for end.
func (u *underway) begin() uint64 {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.begun++
	u.left++
	return u.begun
}

func (u *underway) end(number uint64) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.left--
	u.waits = slices.DeleteFunc(u.waits, func(w *underwayWait) bool {
		if number <= w.begun {
			w.left--
		}
		if w.left == 0 {
			close(w.over)
		}
		return w.left == 0
	})
}

// wait waits for all that has begun before, and not for what begins meanwhile.
func (u *underway) wait() {
	u.mutex.Lock()
	if u.left == 0 {
		u.mutex.Unlock()
		return
	}
	w := &underwayWait{begun: u.begun, left: u.left, over: make(chan struct{})}
	u.waits = append(u.waits, w)
	u.mutex.Unlock()
	<-w.over
}

// some reports whether anything is under way.
func (u *underway) some() bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.left > 0
}
