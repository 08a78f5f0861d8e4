package waiting

import (
	"slices"
	"sync"
)

// Underway counts what has begun and not ended, for who waits for that. Nobody who begins has to wait, unlike with a
// lock: who is in the middle of something may begin another. The zero value is ready; it is safe for concurrent use.
type Underway struct {
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

// Begin returns the number for End.
func (u *Underway) Begin() uint64 {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.begun++
	u.left++
	return u.begun
}

// End ends what has the number.
func (u *Underway) End(number uint64) {
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

// Wait waits for all that has begun before, and not for what begins meanwhile.
func (u *Underway) Wait() {
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

// Some reports whether anything is under way.
func (u *Underway) Some() bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.left > 0
}
