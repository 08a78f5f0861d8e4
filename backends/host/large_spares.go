package host

import (
	"slices"
	"sync"
	"syscall"

	"hamr/backends"
)

// Freed large blocks wait here for reuse: glibc gives them back to the system, and the first
// touch of fresh pages costs several times what a copy to pages that are there does. The system
// is told that it may take the pages whenever it is short of memory (MADV_FREE).
const (
	smallestLarge = 32<<20 + 1 // glibc keeps what is smaller
	mostLarge     = 8          // blocks
	mostBytes     = 1 << 30    // and bytes, but no more than
	largeShare    = 16         // this part of the machine's memory
)

// largeSpares holds blocks of the C library's heap, the oldest first.
type largeSpares struct {
	mutex  sync.Mutex
	blocks []block
	bytes  int
}

type block struct {
	at   backends.Address
	size int // what can be used
}

var largeLimit = sync.OnceValue(func() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	return int(min(mostBytes, uint64(info.Totalram)*uint64(info.Unit)/largeShare))
})

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
		return 0
	}
	b := s.blocks[best]
	s.blocks = slices.Delete(s.blocks, best, best+1)
	s.bytes -= b.size
	return b.at
}

// put keeps a block. Those that it has no room for beside it go to free, as it does itself if it
// is larger than all that may be kept.
func (s *largeSpares) put(b block, free func(backends.Address)) {
	limit := largeLimit()
	if b.size > limit || !offer(b) {
		free(b.at)
		return
	}
	s.mutex.Lock()
	s.blocks = append(s.blocks, b)
	s.bytes += b.size
	var out []block
	for s.bytes > limit || len(s.blocks) > mostLarge {
		out = append(out, s.blocks[0])
		s.bytes -= s.blocks[0].size
		s.blocks = s.blocks[1:]
	}
	s.mutex.Unlock()
	for _, b := range out {
		free(b.at)
	}
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

// offer lets the system take the block's whole pages; what is in them is lost then. It reports
// false where the pages cannot be offered, as where they are locked.
func offer(b block) bool {
	const adviceFree = 8 // MADV_FREE
	page := backends.Address(syscall.Getpagesize())
	first, end := (b.at+page-1)&^(page-1), (b.at+backends.Address(b.size))&^(page-1)
	if end <= first {
		return false
	}
	_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(first), uintptr(end-first), adviceFree)
	return errno == 0
}
