package bridge

import (
	"sync"
	"sync/atomic"
	"time"
)

// endSoon is how long a lease may wait for its end.
const endSoon = time.Millisecond

// storeEndings are leases that Python has let go of and that have not ended. They end before the next call
// of the store's, so that it finds what it would have found.
var storeEndings endings

type endings struct {
	open   atomic.Int64 // leases that have not ended
	ending sync.Mutex   // of who ends some
	mu     sync.Mutex   // of list
	list   []*storeObject
}

// later ends a lease soon.
func (e *endings) later(o *storeObject) {
	e.open.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.list = append(e.list, o); len(e.list) == 1 {
		time.AfterFunc(endSoon, e.now)
	}
}

// now ends those that there are, and returns when that is so, whoever does it.
func (e *endings) now() {
	if e.open.Load() == 0 {
		return
	}
	e.ending.Lock()
	defer e.ending.Unlock()
	e.mu.Lock()
	list := e.list
	e.list = nil
	e.mu.Unlock()
	for _, o := range list {
		o.end()
	}
	e.open.Add(int64(-len(list)))
}

// StoreSettle ends the leases that Python has let go of.
func StoreSettle() { storeEndings.now() }
