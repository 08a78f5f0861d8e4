package gobuffer

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// leases are what keeps memory for other processes that is nobody else's to keep, and the pools that
// processes share.
//
// A lease is a pair of connected sockets: one end stays here, the other one goes with a frame, to
// as many processes as have it. When the kernel closes the last of these, for whatever reason, none of
// them has the memory any more, and none can get it. Who opens the memory says so on its end, or in its
// lane, and when it has let go: a process that ends without that may have work under way on a device still, until
// the kernel is done with it.
type leases struct {
	mu      sync.Mutex
	lent    map[shareID]lent
	maker   shareID // as which others know these leases; zero before there is one
	slots   slots
	lanes   []*readLane                     // the watcher alone uses them
	offered map[backends.Region]*sharedPool // by allocator and device
	open    map[shareID]*openPool
	uses    uint64
	devices sync.Map                    // UUIDs of devices by deviceKey, and these by UUIDs
	last    atomic.Pointer[knownDevice] // which was asked for last
}

// lent is memory, and where in it what was shared starts.
type lent struct {
	memory *Memory
	start  backends.Address
	slot   int
}

// sharedPool is a pool of this process.
type sharedPool struct {
	id         shareID
	device     backends.UUID
	descriptor int
}

const (
	leaseOpens = 1
	leaseEnds  = 0
	// Of a process that this one cannot see, nobody tells when it is gone.
	afterDeath = time.Second
)

func newShareID() (id shareID) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// sharedPool returns the pool that memory is of, whose descriptor stays the runtime's.
func (r *Runtime) sharedPool(s backends.PoolSharer, at backends.Region) (*sharedPool, error) {
	l := &r.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	at.Address = 0
	if p := l.offered[at]; p != nil {
		return p, nil
	}
	device, err := r.deviceID(at)
	if err != nil {
		return nil, err
	}
	descriptor, err := s.SharedPool(at.Allocator, at.Device)
	if err != nil {
		return nil, err
	}
	if l.offered == nil {
		l.offered = map[backends.Region]*sharedPool{}
	}
	p := &sharedPool{newShareID(), device, descriptor}
	l.offered[at] = p
	return p, nil
}

// lend keeps memory until all who have the descriptor that it returns are gone. The note is for who opens it.
func (l *leases) lend(m *Memory, start backends.Address) (descriptor int, id shareID, note leaseNote, err error) {
	made, end, err := takeLease()
	if err != nil {
		return -1, id, note, err
	}
	l.mu.Lock()
	if l.lent == nil {
		l.lent, l.maker = map[shareID]lent{}, newShareID()
	}
	note.maker = l.maker
	note.slot, note.generation = l.slots.take()
	id = note.share()
	l.lent[id] = lent{m.Retain(), start, note.slot}
	l.mu.Unlock()
	leaseWatcher.lends(made, l, id, note)
	return end, id, note, nil
}

// share is an id that no other share has: makers' are random, and generations their own.
func (n leaseNote) share() (id shareID) {
	id = n.maker
	for i := range 8 {
		id[i] ^= byte(n.generation >> (8 * i))
	}
	return id
}

// letGo ends a lease.
func (l *leases) letGo(id shareID) {
	l.mu.Lock()
	ended := l.lent[id]
	delete(l.lent, id)
	l.slots.give(ended.slot)
	l.mu.Unlock()
	_ = ended.memory.Release() // what fails is traced by the runtime, and nobody waits for this
}

// find returns a new reference to memory that this process has lent, nil if it has not.
func (l *leases) find(id shareID) (*Memory, backends.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.lent[id]
	if found.memory == nil {
		return nil, 0
	}
	return found.memory.Retain(), found.start
}

// tell says on a lease's end that this process has the memory, or has not any more. Nobody waits for it.
func tell(lease int, what byte) {
	_ = unix.Sendto(lease, []byte{what}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
}
