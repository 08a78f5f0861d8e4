package shares

import (
	"sync"
	"time"

	"hamr/backends"
)

// Reference is a reference to memory: the memory stays until all references are released.
type Reference interface {
	// Again returns another reference to the same memory.
	Again() Reference
	Release() error
}

// leases keep memory for other processes.
type leases struct {
	mu    sync.Mutex
	lent  map[id]lent
	maker id // as which others know these leases; zero before there is one
	slots slots
	lanes []*readLane // the watcher alone uses them
}

// lent is memory, and where in it what was shared starts.
type lent struct {
	memory Reference
	start  backends.Address
	slot   int
}

// Of a process that this one cannot see, nobody tells when it is gone.
const afterDeath = time.Second

// lend keeps memory until all who have the descriptor that it returns are gone. The note is for who opens it.
func (l *leases) lend(memory Reference, start backends.Address) (descriptor int, share id, note note, err error) {
	made, end, err := takeLease()
	if err != nil {
		return -1, share, note, err
	}
	l.mu.Lock()
	if l.lent == nil {
		l.lent, l.maker = map[id]lent{}, newID()
	}
	note.maker = l.maker
	note.slot, note.generation = l.slots.take()
	share = note.share()
	l.lent[share] = lent{memory.Again(), start, note.slot}
	l.mu.Unlock()
	leaseWatcher.lends(made, l, share, note)
	return end, share, note, nil
}

// letGo ends a lease.
func (l *leases) letGo(share id) {
	l.mu.Lock()
	ended := l.lent[share]
	delete(l.lent, share)
	l.slots.give(ended.slot)
	l.mu.Unlock()
	_ = ended.memory.Release() // what fails is traced by the runtime, and nobody waits for this
}

// find returns a new reference to memory that this process has lent, nil if it has not.
func (l *leases) find(share id) (Reference, backends.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.lent[share]
	if found.memory == nil {
		return nil, 0
	}
	return found.memory.Again(), found.start
}
