package elements

import (
	"unsafe"

	ai "hamr/arrayiface"
)

// tileSide squared elements of 8 bytes and their cache lines on both sides fit a first-level cache.
const tileSide = 32

// longRow elements are worth a kernel's call of their own, rather than moving
// them together with those of other rows first.
const longRow = 32

// A copier copies planes of one shape: rows of outer, elements of inner.
type copier struct {
	outer, inner dim
	// rows and columns of one tile, as large as a piece if tiles bring nothing.
	rows, columns int
	dt, st        ai.ElementType
	dsize, ssize  int
	convert       kernel
	scratch       *scratch
}

func (w *work) copier(outer, inner dim) *copier {
	c := &copier{
		outer: outer, inner: inner, columns: min(inner.n, pieceLen),
		dt: w.dt, st: w.st, dsize: w.dsize, ssize: w.ssize, convert: kernelFor(w.dt, w.st),
	}
	c.rows = min(outer.n, pieceLen/c.columns)
	if c.convert != nil {
		c.scratch = takeScratch()
		c.columns = min(inner.n, blockLen)
		c.rows = min(outer.n, blockLen/c.columns)
		if inner.d == c.dsize && inner.s == c.ssize && inner.n >= longRow {
			c.rows = 1
		}
	}
	if w.transposed {
		c.rows, c.columns = min(outer.n, tileSide), min(inner.n, tileSide)
	}
	return c
}

func (c *copier) close() {
	if c.scratch != nil {
		c.scratch.giveBack()
	}
}

func (c *copier) plane(dst, src unsafe.Pointer) {
	for row := 0; row < c.outer.n; row += c.rows {
		outer := dim{min(c.rows, c.outer.n-row), c.outer.d, c.outer.s}
		for column := 0; column < c.inner.n; column += c.columns {
			inner := dim{min(c.columns, c.inner.n-column), c.inner.d, c.inner.s}
			c.tile(
				unsafe.Add(dst, row*outer.d+column*inner.d),
				unsafe.Add(src, row*outer.s+column*inner.s), outer, inner)
		}
	}
}

// tile converts through the scratch, since a kernel wants elements that follow
// one another; what already does is not moved first.
func (c *copier) tile(dst, src unsafe.Pointer, outer, inner dim) {
	if c.convert == nil {
		move2D(c.dsize, dst, src, outer, inner)
		return
	}
	dpacked := inner.d == c.dsize && (outer.n == 1 || outer.d == inner.n*c.dsize) && aligned(dst, c.dt)
	spacked := inner.s == c.ssize && (outer.n == 1 || outer.s == inner.n*c.ssize) && aligned(src, c.st)
	in, out := src, dst
	if !spacked {
		in = unsafe.Pointer(&c.scratch.a)
		move2D(c.ssize, in, src,
			dim{outer.n, inner.n * c.ssize, outer.s}, dim{inner.n, c.ssize, inner.s})
	}
	if !dpacked {
		out = unsafe.Pointer(&c.scratch.b)
	}
	c.convert(out, in, outer.n*inner.n)
	if !dpacked {
		move2D(c.dsize, dst, out,
			dim{outer.n, outer.d, inner.n * c.dsize}, dim{inner.n, inner.d, c.dsize})
	}
}

// rowBytes is from where a call of memmove for a row beats a loop.
const rowBytes = 64

func move2D(size int, dst, src unsafe.Pointer, outer, inner dim) {
	if inner.d == size && inner.n*size >= rowBytes {
		switch inner.s {
		case size:
			for i := range outer.n {
				move(unsafe.Add(dst, i*outer.d), unsafe.Add(src, i*outer.s), inner.n*size)
			}
			return
		case 0:
			for i := range outer.n {
				repeat(unsafe.Add(dst, i*outer.d), unsafe.Add(src, i*outer.s), size, inner.n)
			}
			return
		}
	}
	// Arrays of bytes have no alignment to keep, and compile to one load and one store.
	switch size {
	case 1:
		loop2D[[1]byte](dst, src, outer, inner)
	case 2:
		loop2D[[2]byte](dst, src, outer, inner)
	case 4:
		loop2D[[4]byte](dst, src, outer, inner)
	case 8:
		loop2D[[8]byte](dst, src, outer, inner)
	case 16:
		loop2D[[16]byte](dst, src, outer, inner)
	}
}

// loop2D is not inlined: with five copies of it in one function the compiler
// runs out of registers and keeps the counters in memory, six times slower.
//
//go:noinline
func loop2D[E [1]byte | [2]byte | [4]byte | [8]byte | [16]byte](dst, src unsafe.Pointer, outer, inner dim) {
	n, dstep, sstep := inner.n, inner.d, inner.s
	for i := range outer.n {
		d, s := i*outer.d, i*outer.s
		for range n {
			*(*E)(unsafe.Add(dst, d)) = *(*E)(unsafe.Add(src, s))
			d, s = d+dstep, s+sstep
		}
	}
}

// repeat doubles what it has written, up to a block that stays in the cache.
func repeat(dst, src unsafe.Pointer, size, n int) {
	const block = 4096
	out := unsafe.Slice((*byte)(dst), n*size)
	done := copy(out, unsafe.Slice((*byte)(src), size))
	for done < len(out) {
		done += copy(out[done:], out[:min(done, block)])
	}
}
