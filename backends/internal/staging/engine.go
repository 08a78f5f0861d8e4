// Package staging moves bytes between ordinary host memory and a device by way of chunks of
// page-locked memory, which several threads fill or empty while the device copies others. A
// driver does the same with one thread, at a third of the speed of the bus or less.
package staging

import (
	"cmp"
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"hamr/backends"
)

// What an Engine's settings are without a choice.
const (
	// DefaultLimit is how much page-locked memory is held, in bytes.
	DefaultLimit = 128 << 20
	// fewest is how many threads it takes to be faster than a driver.
	fewest = 4
	// most is how many still make it faster.
	most = 8

	smallestChunk = 256 << 10
	largestChunk  = 4 << 20
	// pieces is into how many chunks a transfer is cut, within those bounds: enough for all
	// threads to begin soon, and to end together.
	pieces = 32
	// Smaller transfers are over before the threads have woken up.
	smallest = 4 << 20

	// share is what part of a transfer new chunks may have, and fewestChunks how many there may be
	// in any case: a mebibyte of page-locked memory takes a driver 0.4 ms.
	share        = 8
	fewestChunks = 4
)

// Engine owns the chunks. Its methods are safe for concurrent use; the fields are set before
// the first one.
type Engine struct {
	// Threads is how many copy at once; zero chooses by the processors that the process may use.
	Threads int
	// Chunk is the size of a chunk in bytes, and of the smallest transfer that is staged; zero
	// chooses by the size of the transfer.
	Chunk int
	// Limit bounds the page-locked memory; zero is DefaultLimit.
	Limit int

	mu    sync.Mutex
	idle  []*Chunk
	bytes int
}

// Chunk is page-locked memory that one transfer uses at a time.
type Chunk struct {
	Address backends.Address
	Size    int
	// Mark is the Driver's: it stands for the last copy of the chunk.
	Mark    Mark
	pending bool
}

// bytes returns the first n bytes of the chunk.
func (c *Chunk) bytes(n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&c.Address))), n)
}

// Mark is an event of a device.
type Mark struct {
	Event  uintptr
	Device int
}

// Driver is a transfer's way to a device. Its methods are called on the goroutine that began the
// transfer.
type Driver interface {
	// NewChunk returns page-locked memory that every device reaches.
	NewChunk(size int) (*Chunk, error)
	// Up copies n bytes from the beginning of a chunk to offset bytes after the transfer's
	// beginning on the device, in stream order, and has the chunk's mark stand for it. After
	// an error the device does not use the chunk.
	Up(c *Chunk, offset, n int) error
	// Down copies the other way.
	Down(c *Chunk, offset, n int) error
	// Done reports whether the last copy of the chunk is over.
	Done(c *Chunk) (bool, error)
}

// Serves reports whether a transfer of so many bytes is worth staging.
func (e *Engine) Serves(size int) bool {
	if e.Chunk > 0 {
		return size >= e.Chunk && e.Threads >= 0 && e.Limit >= 0
	}
	return size >= smallest && e.threads() > 0 && e.Limit >= 0
}

// threads returns how many threads copy; zero where there are too few processors.
func (e *Engine) threads() int {
	if e.Threads != 0 {
		return max(e.Threads, 0)
	}
	processors := runtime.GOMAXPROCS(0)
	if processors < fewest {
		return 0
	}
	return min(processors-1, most)
}

// chunkSize is a power of two without a choice, so that transfers find each other's chunks.
func (e *Engine) chunkSize(size int) int {
	if e.Chunk > 0 {
		return e.Chunk
	}
	return min(max(1<<(bits.Len(uint(size/pieces))-1), smallestChunk), largestChunk)
}

// take returns up to count chunks for pieces of a size: idle ones first, then new ones. There is
// at least one, or errors.ErrUnsupported if others have them all, or there is no more such memory.
// New ones are no more than a share of the transfer, which would otherwise take longer than
// the driver does: the next ones have those.
func (e *Engine) take(d Driver, count, size, transfer int) ([]*Chunk, error) {
	taken := e.takeIdle(count, size)
	for room := max(transfer/share, fewestChunks*size); len(taken) < count && room >= size && e.reserve(size); room -= size {
		c, err := d.NewChunk(size)
		if err != nil {
			e.unreserve(size)
			break
		}
		taken = append(taken, c)
	}
	if len(taken) == 0 {
		return nil, errors.ErrUnsupported
	}
	return taken, nil
}

// takeIdle prefers small chunks.
func (e *Engine) takeIdle(count, size int) []*Chunk {
	e.mu.Lock()
	defer e.mu.Unlock()
	var taken, left []*Chunk
	slices.SortStableFunc(e.idle, func(a, b *Chunk) int { return cmp.Compare(a.Size, b.Size) })
	for _, c := range e.idle {
		if len(taken) < count && c.Size >= size {
			taken = append(taken, c)
		} else {
			left = append(left, c)
		}
	}
	e.idle = left
	return taken
}

func (e *Engine) reserve(size int) bool {
	limit := e.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bytes+size > limit {
		return false
	}
	e.bytes += size
	return true
}

func (e *Engine) unreserve(size int) {
	e.mu.Lock()
	e.bytes -= size
	e.mu.Unlock()
}

// giveBack keeps chunks for the next transfer, which waits for those still pending.
func (e *Engine) giveBack(chunks []*Chunk) {
	e.mu.Lock()
	e.idle = append(e.idle, chunks...)
	e.mu.Unlock()
}

// Trim takes the chunks out that no transfer uses; free gives each back once its copy is over.
func (e *Engine) Trim(free func(*Chunk) error) error {
	e.mu.Lock()
	idle := e.idle
	e.idle = nil
	for _, c := range idle {
		e.bytes -= c.Size
	}
	e.mu.Unlock()
	var failed error
	for _, c := range idle {
		failed = errors.Join(failed, free(c))
	}
	return failed
}

// Held returns how much page-locked memory there is, in bytes.
func (e *Engine) Held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes
}
