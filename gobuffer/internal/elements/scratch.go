package elements

import (
	"sync"
	"unsafe"

	ai "hamr/arrayiface"
)

// pieceLen elements take less than a millisecond or two. Go stops a goroutine only where it calls a
// function that looks whether it shall, since the library has no signals for that: all other threads'
// calls wait for one that goes on while garbage is collected.
const pieceLen = 1 << 18

// blockLen elements of any type fit half a scratch, and a scratch of the common types a first-level cache.
const blockLen = 1024

type scratch struct{ a, b [2 * blockLen]uint64 }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func takeScratch() *scratch { return scratches.Get().(*scratch) }

func (s *scratch) giveBack() { scratches.Put(s) }

func aligned(p unsafe.Pointer, t ai.ElementType) bool {
	size := t.Size()
	if t.Kind() == ai.KindComplex {
		size /= 2
	}
	return uintptr(p)%uintptr(size) == 0
}

func move(dst, src unsafe.Pointer, bytes int) {
	copy(unsafe.Slice((*byte)(dst), bytes), unsafe.Slice((*byte)(src), bytes))
}
