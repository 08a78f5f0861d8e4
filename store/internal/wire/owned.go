// Package wire is what a store's packets go by: sockets and the waits for them, the socket's path, the lock beside it,
// and the descriptors that are this process's alone. It knows neither clients nor servers.
package wire

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Descriptor is one that several goroutines may be sending; the last that lets go closes it.
type Descriptor struct {
	Number int
	users  atomic.Int32
}

func NewDescriptor(number int) *Descriptor {
	Record(number)
	d := &Descriptor{Number: number}
	d.users.Store(1)
	return d
}

func (d *Descriptor) Retain() *Descriptor {
	d.users.Add(1)
	return d
}

func (d *Descriptor) Release() {
	if d != nil && d.users.Add(-1) == 0 {
		_ = CloseRecorded(d.Number)
	}
}

// mostRecorded is how many descriptors, from 0 on, can be recorded: as many as Linux allows by default.
const mostRecorded = 1 << 20

// Bits has a bit for each descriptor that a forked child closes. Its first word is how many of the others to look at.
var Bits [1 + mostRecorded/64]atomic.Uint64

// Recorded returns where the words are that tell which descriptors a forked child closes; they never move. The child
// goes on without its parent's runtime: it would keep a dead server's socket and lock, its clients' sessions, and the
// memory of deleted objects.
func Recorded() *atomic.Uint64 { return &Bits[0] }

// Record has forked children close a descriptor, until it is closed by CloseRecorded or forgotten by Unrecord.
func Record(descriptor int) {
	if descriptor < 0 || descriptor >= mostRecorded {
		return
	}
	at := uint64(descriptor/64) + 1
	//mutate:replace a descriptor that a forked child is to close is not recorded
	//mutate:with 1 << (descriptor % 64) => 0
	Bits[at].Or(1 << (descriptor % 64))
	for most := Bits[0].Load(); most < at && !Bits[0].CompareAndSwap(most, at); most = Bits[0].Load() {
	}
}

// Unrecord comes before the end of a descriptor, whose number is another one's afterwards.
func Unrecord(descriptor int) {
	if descriptor >= 0 && descriptor < mostRecorded {
		Bits[descriptor/64+1].And(^uint64(1 << (descriptor % 64)))
	}
}

func CloseRecorded(descriptor int) error {
	Unrecord(descriptor)
	return unix.Close(descriptor)
}
