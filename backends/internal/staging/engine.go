// Package staging copies between ordinary host memory and a device by way of chunks of page-locked memory. Several
// threads fill or empty chunks while the device copies others. A driver does the same with one thread, at a third of
// the bus's speed or less.
package staging

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// What an Engine's settings are without a choice.
const (
	// DefaultLimit is how much page-locked memory is held, in bytes.
	DefaultLimit = 128 << 20

	// mostFresh is how many threads beside the caller's are used where nobody has measured and the pages to be written
	// are not there yet: more do not make it faster.
	mostFresh = 15

	// Where nobody has measured: smaller transfers are over before the threads have woken up.
	smallest = 1 << 20

	// smallestGathered is up to what size of parts one thread is faster than the driver.
	smallestGathered = 256 << 10

	// Below smallTransfer there are about smallLoads chunks, of smallFold pieces each: the calls of the driver for more
	// chunks would take longer than the bytes, and a larger piece would be one thread's for long.
	smallTransfer = 4 << 20
	smallLoads    = 2
	smallFold     = 8

	smallestChunk = 128 << 10
	largestChunk  = 2 << 20

	// ringDown and ringUp are how many chunks a transfer uses: fewer make workers wait, and more
	// leave no room in the caches.
	ringDown = 32
	ringUp   = 24

	// share is what part of a transfer new chunks may have, and fewest how many there may be
	// in any case: to lock a mebibyte takes as long as to move ten.
	share  = 16
	fewest = 8

	// around is the size from which on transfers to the host bypass the processors' caches, which they do not fit into.
	// aroundUp is the size up to which transfers from the host do.
	around   = 8 << 20
	aroundUp = 128 << 20
)

// steps are, for sizes from some bytes on, how many threads beside the caller's are used where nobody has measured:
// more are in each other's way. Transfers to the host need fewer.
var steps = [...]struct{ from, up, down int }{{128 << 20, 8, 6}, {16 << 20, 6, 5}, {0, 4, 3}}

// classes are the sizes that chunks are made in, so that transfers of other sizes find them.
var classes = [...]int{256 << 10, 512 << 10, largestChunk}

// Engine owns the chunks. Its methods are safe for concurrent use; the fields are set before
// the first one, by Configure or by hand.
type Engine struct {
	// Threads is how many copy beside the caller's; zero chooses by the processors that the
	// process may use, and less leaves all transfers to the driver.
	Threads int
	// Chunk is the size of a chunk in bytes, and of the smallest transfer that is staged; zero, or
	// less, chooses by the size of the transfer.
	Chunk int
	// Limit bounds the page-locked memory; zero is DefaultLimit.
	Limit int

	folds int // instead of what fold chooses, if not zero

	mu    sync.Mutex
	idle  []*Chunk
	bytes int

	crew crew

	backend string
	lookup  func(string) string // nil: no settings, and nothing that was measured
	model   func(device int) (Model, error)
	trace   atomic.Pointer[func(line string)]

	tuningMutex sync.Mutex
	tunings     map[int]*tuning // by device
}

// Driver is a transfer's way to a device. Its methods are called on the goroutine that began the
// transfer.
type Driver interface {
	// Device returns the number of the device.
	Device() int
	// NewArena returns page-locked memory that every device reaches.
	NewArena(size int) (*Arena, error)
	// Up copies n bytes from the beginning of a chunk to offset bytes after the transfer's
	// beginning on the device, in stream order, and has the chunk's mark stand for it. After
	// an error the device does not use the chunk.
	Up(c *Chunk, offset, n int) error
	// Down copies the other way.
	Down(c *Chunk, offset, n int) error
	// Done reports whether the last copy of the chunk is over.
	Done(c *Chunk) (bool, error)
	// Stopped reports whether the transfer is to end before its time, with backends.ErrStopped.
	Stopped() bool
}

// chunkSize is a power of two without a choice.
func (e *Engine) chunkSize(size int) int {
	if e.Chunk > 0 {
		return e.Chunk
	}
	var pieces int
	switch {
	case size < smallTransfer:
		pieces = smallLoads
	case size < 16<<20:
		pieces = 16
	case size < 64<<20:
		pieces = 32
	default:
		pieces = 64
	}
	return min(max(1<<(bits.Len(uint(max(size/pieces, 1)))-1), smallestChunk), largestChunk)
}

// fold returns how many pieces a chunk has.
func (e *Engine) fold(size int) int {
	switch {
	case e.folds > 0:
		return e.folds
	case e.Chunk > 0 || size >= smallTransfer:
		return 1
	}
	return smallFold
}

// class returns the size to make chunks in for pieces of a size.
func (e *Engine) class(size int) int {
	if e.Chunk > 0 {
		return size
	}
	for _, c := range classes {
		if c >= size && c <= e.limit() {
			return c
		}
	}
	return size
}

func (e *Engine) limit() int {
	if e.Limit == 0 {
		return DefaultLimit
	}
	return e.Limit
}

// Held returns how much page-locked memory there is, in bytes.
func (e *Engine) Held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}
