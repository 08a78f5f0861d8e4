// Package turn is the lock that requests take in turn, and how one lets others go on that takes long.
package turn

import "sync"

// Lock guards all that a server knows. A request is done with the lock held.
type Lock struct {
	sync.Mutex
	// Stall, where it is not nil, starts another goroutine that answers requests. The goroutine that answers a request
	// sets it for as long.
	Stall func()
}

// Aside lets other requests be answered, as the one that is being answered takes long. The lock is held.
func (l *Lock) Aside() {
	stall := l.Stall
	//mutate:always all wait for a request that takes long
	if stall == nil {
		return
	}
	l.Stall = nil
	stall()
}

// Pause lets go of the lock for what takes long.
func (l *Lock) Pause(long func()) {
	l.Aside()
	l.Unlock()
	defer l.Lock()
	long()
}
