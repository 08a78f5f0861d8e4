package hetero

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"hamr/backends"
	"hamr/gobuffer"
)

// The bins of a CachingAllocator are CMSSW's: powers of two.
const (
	smallestBin = 8  // 2^8 bytes: smaller requests get as much
	largestBin  = 30 // 2^30 bytes: larger ones are taken from the runtime and given back each time
	cachedShare = 0.8
	// mostAsked is how many blocks of a bin are asked whether their work is over.
	mostAsked = 4
)

// CachingAllocatorOptions says which memory a CachingAllocator hands out.
type CachingAllocatorOptions struct {
	Allocator backends.Allocator // device or page-locked memory of a backend that has streams
	Device    int                // which device; of page-locked memory, any
	// Limit is how many bytes are kept for reuse: zero for CMSSW's rule, which is 0.8 of the memory
	// that is free now on the device of the backend's that has least, or backends.NoLimit.
	Limit int64
}

// CachingAllocator keeps what is given back to it for reuse, by CMSSW's rule: requests are rounded up
// to powers of two from 2^8 to 2^30 bytes; a block can be had again at once by who works on the stream
// that has used it last, and by others when that work is over. It takes memory from the Runtime, whose
// own pools, where there are any, are below it. It is safe for concurrent use.
type CachingAllocator struct {
	scheduler *Scheduler
	allocator backends.Allocator
	device    int
	backend   string
	own       *line // what memory is taken on that has no order; nil: it is in a stream's order
	limit     int64

	mutex     sync.Mutex // no call of a backend is made with it held
	bins      [largestBin + 1][]*Block
	condemned []*Block // to be given back when their work is over
	all       map[*gobuffer.Memory]struct{}
	closed    bool
	counts    AllocatorStatistics
}

// AllocatorStatistics are those of a CachingAllocator. Blocks that are over the limit, and whose work is
// pending, are neither live nor cached: they are given back to the Runtime later.
type AllocatorStatistics struct {
	Live           int   // blocks handed out
	LiveBytes      int64 // theirs
	RequestedBytes int64 // of those, what was asked for
	Cached         int   // blocks kept
	CachedBytes    int64
	Limit          int64 // of CachedBytes, or backends.NoLimit
	Hits, Misses   int64 // how often a kept block was handed out, and how often memory was taken
}

// Block is memory that a CachingAllocator has handed out.
type Block struct {
	from   *CachingAllocator
	memory *gobuffer.Memory
	bin    int // or zero: it is not kept
	size   int // asked for
	line   *line
	freed  bool
	marks  []mark // until when it is in use
}

// mark is an event of a stream's work on a block.
type mark struct {
	cache  *cache
	stream backends.Stream
	event  backends.Event
}

// NewCachingAllocator returns an allocator that has no memory yet.
func (s *Scheduler) NewCachingAllocator(o CachingAllocatorOptions) (*CachingAllocator, error) {
	if s == nil {
		return nil, zeroError("scheduler", "what New and Default return")
	}
	if o.Limit < backends.NoLimit {
		return nil, valueError("limit", o.Limit, "a number of bytes, zero or backends.NoLimit")
	}
	b, err := s.runtime.Backend(o.Allocator)
	if err != nil {
		return nil, err
	}
	kind := o.Allocator.Kind()
	if kind == backends.Pageable {
		return nil, valueError("allocator", o.Allocator, "one of memory that streams work on")
	}
	c, err := s.cacheOf(Place{b.Name(), o.Device})
	if err != nil {
		return nil, err
	}
	a := &CachingAllocator{
		scheduler: s, allocator: o.Allocator, device: o.Device, backend: b.Name(), limit: o.Limit,
		all: map[*gobuffer.Memory]struct{}{},
	}
	if kind == backends.Pinned {
		a.device = backends.HostDevice
	}
	reuser, reuses := backends.As[backends.Reuser](b)
	ordered := o.Allocator.Ordered() || reuses && reuser.Reuses(o.Allocator) && kind != backends.Pinned
	if a.limit == 0 {
		if a.limit, err = cachedLimit(b); err != nil {
			return nil, err
		}
	}
	if !ordered {
		// Its release waits for its stream, so that this is one that has no work.
		if a.own, err = c.newLine(); err != nil {
			return nil, err
		}
	}
	s.mutex.Lock()
	s.allocators = append(s.allocators, a)
	s.mutex.Unlock()
	return a, nil
}

// cachedLimit is CMSSW's rule.
func cachedLimit(b backends.Backend) (int64, error) {
	reporter, ok := backends.As[backends.MemoryReporter](b)
	if !ok {
		return backends.NoLimit, nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, err
	}
	least := int64(backends.NoLimit)
	for device := range count {
		free, _, err := reporter.MemoryInfo(device)
		if err != nil {
			return 0, err
		}
		if least == backends.NoLimit || free < least {
			least = free
		}
	}
	return int64(cachedShare * float64(least)), nil
}

// Allocate returns a block of at least size bytes for use on the context's stream at once. The caller
// frees it. The error may be a *DeviceMismatchError, or a *backends.OutOfMemoryError when nothing that
// is kept could be given back for it.
func (a *CachingAllocator) Allocate(c *Context, size int) (_ *Block, err error) {
	if a == nil || a.scheduler == nil {
		return nil, zeroError("allocator", "what NewCachingAllocator returns")
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer func() {
		if left := c.leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	here := Place{a.backend, a.device}
	if place := c.Place(); place.Backend != a.backend || a.device != backends.HostDevice && place.Device != a.device {
		return nil, &DeviceMismatchError{Have: here, Want: place}
	}
	if size <= 0 {
		return nil, valueError("size", size, "1 … 2**62 bytes")
	}
	a.mutex.Lock()
	closed := a.closed
	a.mutex.Unlock()
	if closed {
		return nil, fmt.Errorf("a caching allocator: %w", ErrReleased)
	}
	bin := binOf(size)
	block, err := a.take(bin, c.line.stream)
	if block == nil && err == nil {
		block, err = a.grow(c, bin, size)
	}
	if err != nil {
		return nil, err
	}
	c.line.retain()
	block.line, block.size = c.line, size
	a.mutex.Lock()
	a.counts.Live++
	a.counts.LiveBytes += block.room()
	a.counts.RequestedBytes += int64(size)
	a.mutex.Unlock()
	return block, nil
}

// binOf is zero for what is not kept.
func binOf(size int) int {
	bin := max(bits.Len(uint(size-1)), smallestBin)
	if bin > largestBin {
		return 0
	}
	return bin
}

// take returns a block of a bin that a stream may use at once, or nil.
func (a *CachingAllocator) take(bin int, stream backends.Stream) (*Block, error) {
	if bin == 0 {
		return nil, nil
	}
	block := a.pop(bin, func(b *Block) bool { return b.only(stream) })
	for asked := 0; block == nil && asked < mostAsked; asked++ {
		candidate := a.pop(bin, func(*Block) bool { return true })
		if candidate == nil {
			return nil, nil
		}
		over, err := candidate.settled(stream)
		if err != nil {
			a.condemn(candidate)
			return nil, err
		}
		if !over {
			a.keep(candidate)
			continue
		}
		block = candidate
	}
	if block == nil {
		return nil, nil
	}
	for _, m := range block.marks {
		m.cache.giveEvent(m.event)
	}
	a.mutex.Lock()
	a.counts.Hits++
	a.mutex.Unlock()
	return &Block{from: a, memory: block.memory, bin: bin}, nil
}

// pop takes the first that is wanted out of a bin.
func (a *CachingAllocator) pop(bin int, wanted func(*Block) bool) *Block {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	i := slices.IndexFunc(a.bins[bin], wanted)
	if i < 0 {
		return nil
	}
	found := a.bins[bin][i]
	a.bins[bin] = slices.Delete(a.bins[bin], i, i+1)
	a.counts.Cached--
	a.counts.CachedBytes -= found.room()
	return found
}

// keep keeps a block for reuse if it is within the limit; else it is condemned.
func (a *CachingAllocator) keep(b *Block) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if b.bin == 0 || a.closed || a.limit != backends.NoLimit && a.counts.CachedBytes+b.room() > a.limit {
		a.condemned = append(a.condemned, b)
		return
	}
	a.bins[b.bin] = append(a.bins[b.bin], b)
	a.counts.Cached++
	a.counts.CachedBytes += b.room()
}

func (a *CachingAllocator) condemn(b *Block) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.condemned = append(a.condemned, b)
}

// grow takes memory from the Runtime.
func (a *CachingAllocator) grow(c *Context, bin, size int) (*Block, error) {
	room := size
	if bin > 0 {
		room = 1 << bin
	}
	stream := c.line.stream
	if a.own != nil {
		stream = a.own.stream
	}
	memory, err := a.scheduler.runtime.Allocate(a.allocator, a.device, room, stream, false)
	var full *backends.OutOfMemoryError
	if errors.As(err, &full) {
		if err := a.Trim(); err != nil {
			return nil, errors.Join(full, err)
		}
		memory, err = a.scheduler.runtime.Allocate(a.allocator, a.device, room, stream, false)
	}
	if err != nil {
		return nil, err
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.all[memory] = struct{}{}
	a.counts.Misses++
	return &Block{from: a, memory: memory, bin: bin}, nil
}

// Region says where the block is.
func (b *Block) Region() backends.Region { return b.memory.Region() }

// Size returns how many bytes were asked for.
func (b *Block) Size() int { return b.size }

func (b *Block) room() int64 { return int64(b.memory.Size()) }

// Free gives the block back when the work is over that the stream of the context holds now which it
// was allocated in, and those of other contexts that have used it. It does not wait. The caller frees
// a block once: another call is an error.
func (b *Block) Free(users ...*Context) error {
	a := b.from
	a.mutex.Lock()
	if b.freed {
		a.mutex.Unlock()
		return fmt.Errorf("a block: %w", ErrReleased)
	}
	b.freed = true
	a.counts.Live--
	a.counts.LiveBytes -= b.room()
	a.counts.RequestedBytes -= int64(b.size)
	a.mutex.Unlock()

	failed := b.mark(b.line)
	for _, c := range users {
		if err := c.enter(); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if c.line != b.line {
			failed = errors.Join(failed, b.mark(c.line))
		}
		failed = errors.Join(failed, c.leave())
	}
	failed = errors.Join(failed, b.line.release())
	if failed != nil {
		a.condemn(b)
	} else {
		a.keep(b)
	}
	return errors.Join(failed, a.sweep())
}

// mark records until when a stream uses the block. If that fails, whoever releases the memory waits.
func (b *Block) mark(l *line) error {
	e, err := l.cache.record(l.stream)
	if err != nil {
		_ = b.memory.Leave(l.stream)
		return err
	}
	b.marks = append(b.marks, mark{l.cache, l.stream, e})
	return nil
}

// only reports whether no other stream has used the block since it was handed out.
func (b *Block) only(stream backends.Stream) bool {
	return !slices.ContainsFunc(b.marks, func(m mark) bool { return m.stream != stream })
}

// settled reports whether all work on a block is over but that of one stream; zero is none. It drops
// the marks of what is, or has failed.
func (b *Block) settled(stream backends.Stream) (bool, error) {
	for len(b.marks) > 0 {
		i := slices.IndexFunc(b.marks, func(m mark) bool { return stream == 0 || m.stream != stream })
		if i < 0 {
			break
		}
		m := b.marks[i]
		done, err := m.cache.streams.Done(m.cache.place.Device, m.event)
		if err != nil {
			b.marks = slices.Delete(b.marks, i, i+1)
			return false, errors.Join(m.cache.earlier(err), m.cache.destroyEvent(m.event))
		}
		if !done {
			return false, nil
		}
		m.cache.giveEvent(m.event)
		b.marks = slices.Delete(b.marks, i, i+1)
	}
	return true, nil
}

// discard gives memory back to the Runtime that nobody uses.
func (a *CachingAllocator) discard(b *Block) error {
	a.mutex.Lock()
	delete(a.all, b.memory)
	a.mutex.Unlock()
	return b.memory.Release()
}
