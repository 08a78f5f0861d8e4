package hetero

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"hamr/backends"
	"hamr/backends/waiting"
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
	streams   backends.Streams
	own       *line // what memory is taken on that has no order; nil: it is in a stream's order
	limit     int64

	leaving   waiting.Underway // memory that is not in all any more is given back, see forget
	mutex     sync.Mutex       // no call of a backend is made with it held
	bins      [largestBin + 1][]*Block
	condemned []*Block // to be given back when their work is over
	all       map[*gobuffer.Memory]struct{}
	users     map[handle]*user
	taking    int // calls that may add to all
	closed    bool
	ended     bool // it was closed, and nothing is left
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
		scheduler: s, allocator: o.Allocator, device: o.Device, backend: b.Name(), streams: c.streams, limit: o.Limit,
		all: map[*gobuffer.Memory]struct{}{}, users: map[handle]*user{},
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
	s.add(a)
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
		return nil, errNoAllocator
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer func() {
		if left := c.leave(); left != nil {
			err = errors.Join(err, left)
		}
	}()
	if place := c.Place(); place.Backend != a.backend || a.device != backends.HostDevice && place.Device != a.device {
		return nil, &DeviceMismatchError{Have: Place{a.backend, a.device}, Want: place}
	}
	block, err := a.allocate(c.line.cache, c.line.stream, size)
	if err != nil {
		return nil, err
	}
	c.line.retain()
	block.line = c.line
	return block, nil
}

// AllocateOn is Allocate for use on a stream of the backend's, whoever has made it; zero is the default
// one. The stream must exist until Free; before it is destroyed, Scheduler.ForgetStream is to be told.
func (a *CachingAllocator) AllocateOn(stream backends.Stream, size int) (*Block, error) {
	if a == nil || a.scheduler == nil {
		return nil, errNoAllocator
	}
	c, resolved, err := a.placeOf(stream)
	if err != nil {
		return nil, err
	}
	return a.allocate(c, resolved, size)
}

// Memory is AllocateOn for memory with one reference, whose last Release is the block's Free: after all
// that hamr knows to use it on whatever streams, and what its own stream holds then.
func (a *CachingAllocator) Memory(stream backends.Stream, size int) (*gobuffer.Memory, error) {
	b, err := a.AllocateOn(stream, size)
	if err != nil {
		return nil, err
	}
	m, err := a.scheduler.runtime.AdoptInOrder(b.Region(), size, b.user.stream, b.freeOn)
	if err != nil {
		return nil, errors.Join(err, b.Free())
	}
	return m, nil
}

var errNoAllocator = zeroError("allocator", "what NewCachingAllocator returns")

// placeOf returns the device of a stream, and the stream as every thread may name it.
func (a *CachingAllocator) placeOf(stream backends.Stream) (c *cache, resolved backends.Stream, err error) {
	device, number := max(a.device, 0), -1
	if stream != 0 {
		if number, err = a.streams.StreamDevice(stream); err != nil {
			return nil, 0, err
		}
	}
	switch {
	case number < 0:
	case a.device == backends.HostDevice:
		device = number
	case number != device:
		return nil, 0, &DeviceMismatchError{Have: Place{a.backend, a.device}, Want: Place{a.backend, number}}
	}
	if resolved, err = a.streams.Resolve(device, stream); err != nil {
		return nil, 0, err
	}
	c, err = a.scheduler.cacheOf(Place{a.backend, device})
	return c, resolved, err
}

func (a *CachingAllocator) allocate(c *cache, stream backends.Stream, size int) (*Block, error) {
	if size <= 0 {
		return nil, valueError("size", size, "1 … 2**62 bytes")
	}
	a.mutex.Lock()
	if a.closed {
		a.mutex.Unlock()
		return nil, fmt.Errorf("a caching allocator: %w", ErrReleased)
	}
	a.taking++
	a.mutex.Unlock()
	u := a.userOf(c, stream)
	bin := binOf(size)
	block, err := a.take(bin, u)
	if block == nil && err == nil {
		block, err = a.grow(u, bin, size)
	}
	a.mutex.Lock()
	a.taking--
	if err == nil {
		block.user, block.size = u, size
		a.counts.Live++
		a.counts.LiveBytes += block.room()
		a.counts.RequestedBytes += int64(size)
	}
	a.mutex.Unlock()
	if err != nil {
		return nil, errors.Join(err, a.end())
	}
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
func (a *CachingAllocator) take(bin int, u *user) (*Block, error) {
	if bin == 0 {
		return nil, nil
	}
	block := a.pop(bin, func(b *Block) bool { return b.only(u) })
	for asked := 0; block == nil && asked < mostAsked; asked++ {
		candidate := a.pop(bin, func(*Block) bool { return true })
		if candidate == nil {
			return nil, nil
		}
		over, err := candidate.settled(u)
		if err != nil {
			return nil, errors.Join(err, a.dispose(candidate))
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
		m.user.cache.giveEvent(m.event)
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

// grow takes memory from the Runtime.
func (a *CachingAllocator) grow(u *user, bin, size int) (*Block, error) {
	room := size
	if bin > 0 {
		room = 1 << bin
	}
	stream := u.stream
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
