package host

import (
	"slices"
	"sync"
	"syscall"
	"time"

	"hamr/backends"
)

// Freed large blocks wait here for reuse. glibc would give them back to the system, and the first touch of new pages
// costs several times as much as a copy to pages that are there. After a while the system may take the pages of
// waiting blocks whenever it is short of memory (MADV_FREE). That call costs as much as to copy 20 MB.
//
// Smaller ones have a list of their own, so that many of them do not push a large one out. glibc keeps some of these,
// depending on what else a program has freed and in which order.
const (
	smallestMedium = 256 << 10
	mostMedium     = 16         // blocks
	mediumBytes    = 64 << 20   // and bytes, but no more than
	mediumShare    = 8          // this part of what large ones may have
	smallestLarge  = 32<<20 + 1 // glibc keeps none
	mostLarge      = 8          // blocks
	mostBytes      = 4 << 30    // and bytes, but no more than
	largeShare     = 16         // this part of the machine's memory
)

// usualRest is the time after which the system may take a block's pages.
const usualRest = 500 * time.Millisecond

// largeSpares holds blocks of the C library's heap, the oldest first.
type largeSpares struct {
	count int           // of blocks that it holds at most
	usual func() int    // bytes, without a choice
	rest  time.Duration // after which the system may take a block's pages

	mutex   sync.Mutex
	blocks  []block
	bytes   int
	most    int  // bytes there ever were
	limited bool // to limit bytes, instead of the usual ones
	limit   int
	hits    int64
	misses  int64
	timer   *time.Timer // of those whose pages the system may not take yet, if there are any
}

type block struct {
	at      backends.Address
	size    int // what can be used
	since   time.Time
	offered bool // to the system
}

var largeLimit = sync.OnceValue(func() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	return int(min(mostBytes, uint64(info.Totalram)*uint64(info.Unit)/largeShare))
})

func mediumLimit() int { return min(mediumBytes, largeLimit()/mediumShare) }

// take returns the smallest block that has size bytes and at most a quarter more, or zero.
func (s *largeSpares) take(size int) backends.Address {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	best := -1
	for i, b := range s.blocks {
		if b.size >= size && b.size-size <= size/4 && (best < 0 || b.size < s.blocks[best].size) {
			best = i
		}
	}
	if best < 0 {
		s.misses++
		return 0
	}
	s.hits++
	b := s.blocks[best]
	s.blocks = slices.Delete(s.blocks, best, best+1)
	s.bytes -= b.size
	return b.at
}

// put keeps a block. Other blocks for which there is no room then go to free. So does the block itself if it is
// larger than all that may be kept.
func (s *largeSpares) put(b block, free func(backends.Address)) {
	s.mutex.Lock()
	fits := b.size <= s.limitNow()
	s.mutex.Unlock()
	if !fits {
		free(b.at)
		return
	}
	b.since = time.Now()
	s.mutex.Lock()
	s.blocks = append(s.blocks, b)
	s.bytes += b.size
	out := s.surplus()
	s.most = max(s.most, s.bytes)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.rest, func() { s.offer(free) })
	}
	s.mutex.Unlock()
	for _, b := range out {
		free(b.at)
	}
}

// offer lets the system take the pages of blocks that have waited. Their contents are lost then, so nobody may take a
// block meanwhile.
func (s *largeSpares) offer(free func(backends.Address)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.timer = nil
	var left []block
	waiting := false
	for _, b := range s.blocks {
		switch {
		case b.offered:
		case time.Since(b.since) < s.rest:
			waiting = true
		case advise(b, adviceFree):
			b.offered = true
		default: // pages that are locked cannot be offered
			s.bytes -= b.size
			free(b.at)
			continue
		}
		left = append(left, b)
	}
	s.blocks = left
	if waiting {
		s.timer = time.AfterFunc(s.rest, func() { s.offer(free) })
	}
}

// limitNow is how many bytes are kept at most, with the mutex held.
func (s *largeSpares) limitNow() int {
	if s.limited {
		return s.limit
	}
	return s.usual()
}

// surplus takes out what may not be kept, with the mutex held.
func (s *largeSpares) surplus() (out []block) {
	for s.bytes > s.limitNow() || len(s.blocks) > s.count {
		out = append(out, s.blocks[0])
		s.bytes -= s.blocks[0].size
		s.blocks = s.blocks[1:]
	}
	return out
}

// drain hands every block to free and reports whether there was one.
func (s *largeSpares) drain(free func(backends.Address)) bool {
	s.mutex.Lock()
	blocks := s.blocks
	s.blocks, s.bytes = nil, 0
	s.mutex.Unlock()
	for _, b := range blocks {
		free(b.at)
	}
	return len(blocks) > 0
}

const (
	adviceFree = 8  // MADV_FREE
	adviceHuge = 14 // MADV_HUGEPAGE

	// smallestHuge is the size from which on huge pages are asked for, which the system provides in a third of the time.
	// NumPy does the same.
	smallestHuge = 4 << 20
)

// advise tells the system how the block's whole pages will be used.
func advise(b block, advice uintptr) bool {
	page := backends.Address(syscall.Getpagesize())
	first, end := (b.at+page-1)&^(page-1), (b.at+backends.Address(b.size))&^(page-1)
	if end <= first {
		return false
	}
	_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(first), uintptr(end-first), advice)
	return errno == 0
}
