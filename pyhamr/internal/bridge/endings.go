package bridge

import (
	"sync"
	"sync/atomic"
	"time"
)

// endSoon is how long a store's lease may wait for its end.
const endSoon = time.Millisecond

// ending is what Python has let go of, and nobody waits for the end of.
type ending interface{ end() }

// storeEndings are leases of the store's. They end before the next call of the store's, so that it finds
// what it would have found. shareEndings are elements of other processes, which end before others are opened:
// the driver may have what is to be opened open still.
var storeEndings, shareEndings endings

type endings struct {
	open   atomic.Int64 // those that have not ended
	ending sync.Mutex   // of who ends some
	mu     sync.Mutex   // of list
	list   []ending
}

// later ends something soon.
func (e *endings) later(what ending) {
	if e.add(what) {
		time.AfterFunc(endSoon, e.now)
	}
}

// aside ends something at once, on another thread.
func (e *endings) aside(what ending) {
	if e.add(what) {
		go e.now()
	}
}

// add reports whether nobody is about to end what there is.
func (e *endings) add(what ending) bool {
	e.open.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, what)
	return len(e.list) == 1
}

// now ends those that there are, and returns when that is so, whoever does it.
func (e *endings) now() {
	if e.open.Load() == 0 {
		return
	}
	//mutate:remove leases of which the end was put off are still there when it is asked for
	e.ending.Lock()
	//mutate:also remove
	defer e.ending.Unlock()
	e.mu.Lock()
	list := e.list
	e.list = nil
	e.mu.Unlock()
	for _, each := range list {
		each.end()
	}
	e.open.Add(int64(-len(list)))
}

// Settle ends what Python has let go of.
func Settle() {
	storeEndings.now()
	shareEndings.now()
}
