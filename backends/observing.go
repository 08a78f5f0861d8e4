package backends

// Observer is implemented by backends that can tell what anybody in this process has their runtime do:
// other libraries' work, too.
type Observer interface {
	// Observe tells a Witness what the runtime is asked to do from now on, until stop is called, on the thread
	// that asks. There is one Witness at a time, of a process: the error is errors.ErrUnsupported where
	// the runtime does not tell, else it says what was looked for.
	Observe(to Witness) (stop func(), err error)
}

// Queue is a stream, as an Observer numbers them from 1 on: unlike a handle, a number is never that of another stream,
// and special streams have numbers of their own.
type Queue uint64

// Writes says what work does with memory.
type Writes uint8

// What may be known of it.
const (
	// MayWrite is work of which nobody knows, as of a kernel that has a pointer.
	MayWrite Writes = iota
	// OnlyReads is work that does not write.
	OnlyReads
	// DoesWrite is work that writes.
	DoesWrite
)

// Touch is a run of bytes that work uses.
type Touch struct {
	Address Address
	Size    int // bytes; 1 where only its start is known
	Writes  Writes
	// Of rows with gaps between them: how far they are apart, and how many bytes each has. Both are
	// zero of others. Width alone is zero where the gaps are not told.
	Pitch, Width int
}

// Work is something that is enqueued.
type Work struct {
	Queue   Queue
	Stream  Stream // the handle by which it was named
	Name    string // of the kernel, or of the runtime's function
	Touches []Touch
}

// Witness is told by an Observer. Its methods are called while the runtime's caller holds locks: they
// call nothing of a backend, and wait for nobody who may wait for the runtime.
//
// What comes before what is told so that more seems to be in order than may be, where threads call at the same time.
type Witness interface {
	// Enqueue is told of work before it is enqueued; it returns a number of it, and what the Observer calls, if it is
	// not nil, once it has no locks of its own.
	Enqueue(w Work) (number uint64, then func())
	// Refused is told of work that the runtime did not take after all.
	Refused(q Queue, number uint64)
	// After is told that all of q from now on comes after what other has now.
	After(q, other Queue)
	// Record is told that an event stands for what a queue has now.
	Record(e Event, q Queue)
	// Wait is told that all of q from now on comes after what an event stands for.
	Wait(q Queue, e Event)
	// Over is told that all that a queue has now has ended, and with it all that came before.
	Over(q Queue)
	// Reached is told that what an event stands for has ended.
	Reached(e Event)
	// Close is told that nothing more is enqueued on a queue. It returns whether it is to be told when what it has now
	// has ended: not where that was so already.
	Close(q Queue) bool
	// Forget is told that an event is no more.
	Forget(e Event)
	// Made is told of memory that somebody has been given: what has used it before is over, or comes before.
	Made(at Address, size int)
}
