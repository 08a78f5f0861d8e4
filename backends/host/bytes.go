package host

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
)

const (
	// Go cannot interrupt a memmove, and its collector waits for it. So work is cut into pieces of this size, which take
	// well under a millisecond.
	pieceSize = 4 << 20
	// Below this, starting goroutines costs more than it saves.
	parallelSize = 8 << 20
	// One core does not fill the memory bus, eight do.
	mostWorkers = 8
	// A template of this size stays in the first-level cache.
	templateSize = 16 << 10
)

// bytesAt views C memory. The detour through a pointer to at keeps go vet
// content: the rule it checks is about Go memory.
func bytesAt(at backends.Address, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size)
}

func overlap(a, b []byte) bool {
	first, second := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return first < second+uintptr(len(b)) && second < first+uintptr(len(a))
}

// move copies src to dst, of the same length, as memmove does.
func move(dst, src []byte) {
	if len(dst) < parallelSize || overlap(dst, src) {
		copy(dst, src)
		return
	}
	inPieces(len(dst), pieceSize, func(from, to int) { copy(dst[from:to], src[from:to]) })
}

// repeat fills dst, a multiple of pattern long, with pattern.
func repeat(dst, pattern []byte) {
	if isZero(pattern) {
		if len(dst) < parallelSize {
			clear(dst)
			return
		}
		inPieces(len(dst), pieceSize, func(from, to int) { clear(dst[from:to]) })
		return
	}
	template := dst[:min(len(dst), templateSize/len(pattern)*len(pattern))]
	for done := copy(template, pattern); done < len(template); done *= 2 {
		copy(template[done:], template[:done])
	}
	rest := dst[len(template):]
	if len(rest) == 0 {
		return
	}
	if len(rest) < parallelSize {
		tile(rest, template)
		return
	}
	inPieces(len(rest), pieceSize/len(template)*len(template), func(from, to int) { tile(rest[from:to], template) })
}

func isZero(pattern []byte) bool {
	for _, b := range pattern {
		if b != 0 {
			return false
		}
	}
	return true
}

func tile(dst, template []byte) {
	for len(dst) > 0 {
		dst = dst[copy(dst, template):]
	}
}

// inPieces calls work for pieces that cover [0, size), each but the last of the
// given length, from several goroutines at once.
func inPieces(size, piece int, work func(from, to int)) {
	var next atomic.Int64
	run := func() {
		for {
			to := int(next.Add(int64(piece)))
			from := to - piece
			if from >= size {
				return
			}
			work(from, min(to, size))
		}
	}
	workers := min(runtime.GOMAXPROCS(0), mostWorkers, (size+piece-1)/piece)
	var group sync.WaitGroup
	for range workers - 1 {
		group.Go(run)
	}
	run()
	group.Wait()
}
