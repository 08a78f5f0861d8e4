package waiting

import (
	"slices"
	"sync"
)

// Underway counts operations that have begun and not ended, so that others can wait for them. Unlike with a lock,
// nobody waits to begin, and an operation may begin another one. The zero value is ready. It is safe for concurrent
// use.
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

// End ends the operation with that number.
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

// Wait waits for all operations that have begun before, and for none that begins meanwhile.
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
