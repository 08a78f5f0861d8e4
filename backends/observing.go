package backends

// Observer is implemented by backends that can report all calls of their runtime in this process, those of other
// libraries too.
type Observer interface {
	// Observe reports the runtime's calls to a Witness until stop is called, each on the thread that makes it. A process
	// has one Witness at a time. The error is errors.ErrUnsupported where the runtime cannot report calls, otherwise it
	// says what was looked for.
	Observe(to Witness) (stop func(), err error)
}

// Queue is a stream. An Observer numbers streams from 1 on. Unlike a handle, a number is never used again, and
// special streams have numbers of their own.
type Queue uint64

// Writes says what work does with memory.
type Writes uint8

// What may be known of it.
const (
	// MayWrite is work that may write or not, such as a kernel that has a pointer.
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
	// For rows with gaps between them: the distance of rows, and the bytes of each. Both are zero for bytes side by
	// side. Width alone is zero where the gaps are unknown.
	Pitch, Width int
}

// Work is something that is enqueued.
type Work struct {
	Queue   Queue
	Stream  Stream // the handle by which it was named
	Name    string // of the kernel, or of the runtime's function
	Touches []Touch
}

// Witness is called by an Observer, while the runtime's caller may hold locks. Its methods call nothing of a backend,
// and wait for no thread that may wait for the runtime.
//
// Where threads call at the same time, order is reported so that more work may seem to be in order than is.
type Witness interface {
	// Enqueue reports work before it is enqueued. It returns a number for the work, and a function that the Observer
	// calls, if it is not nil, when it holds no locks of its own.
	Enqueue(w Work) (number uint64, then func())
	// Refused reports work that the runtime did not take.
	Refused(q Queue, number uint64)
	// After reports that all later work of q comes after what other holds now.
	After(q, other Queue)
	// Record reports that an event stands for what a queue holds now.
	Record(e Event, q Queue)
	// Wait reports that all later work of q comes after what an event stands for.
	Wait(q Queue, e Event)
	// Over reports that all work that a queue holds now has ended, and all work before it.
	Over(q Queue)
	// Reached reports that what an event stands for has ended.
	Reached(e Event)
	// Close reports that nothing more is enqueued on a queue. It returns whether the end of what the queue holds now
	// should be reported, too. It should not where all of that had ended already.
	Close(q Queue) bool
	// Forget reports the end of an event.
	Forget(e Event)
	// Made reports new memory: work that used it before is over, or comes before later work.
	Made(at Address, size int)
}
