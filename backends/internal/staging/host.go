package staging

import (
	"sort"
	"unsafe"

	"hamr/backends"
)

// Host is the host's end of a transfer: bytes that are counted through, wherever they lie.
type Host interface {
	// Size is the length of the transfer.
	Size() int
	// least is the size of the smallest chunks that will do.
	least() int
	// cut returns where pieces of at most size bytes begin, and where the last one ends. Some small ones are a quarter of
	// that.
	cut(size, small int, up bool) []int
	// each calls visit for the bytes of a piece, and where in the transfer they come.
	each(begin, end int, visit func(bytes []byte, at int))
}

// Blocks is host memory of one transfer: equally large blocks of some planes. Each piece has some blocks of some
// planes, those of a plane one after the other.
type Blocks struct {
	planes []BlockPlane
	index  []int64 // of which blocks; nil counts
	size   int     // of a block
	count  int     // of the blocks of a plane
	pieces []BlockPiece
}

// BlockPlane is where block 0 of a plane lies, and how far the next one is.
type BlockPlane struct {
	Address backends.Address
	Stride  int
}

// BlockPiece is Count blocks, from the number First on, of Planes planes.
type BlockPiece struct {
	Begin         int // in the transfer, in bytes
	Plane, Planes int
	First, Count  int
}

// NewBlocks returns count blocks of each plane, which index names, or which are counted.
func NewBlocks(planes []BlockPlane, index []int64, count, size int) *Blocks {
	return &Blocks{planes: planes, index: index, count: count, size: size}
}

// Size implements Host.
func (b *Blocks) Size() int { return len(b.planes) * b.count * b.size }

func (b *Blocks) least() int { return b.size }

func (b *Blocks) cut(size, small int, up bool) []int {
	wide := min(max(size/b.size, 1), len(b.planes))
	row, whole := wide*b.size, b.Size()
	many := max(size/row, 1)
	few := max(many/quarter, 1)
	ends := min(small, whole/quarter/(few*row)) * few * row
	bounds, at := []int{0}, 0
	b.pieces = nil
	for plane := 0; plane < len(b.planes); plane += wide {
		planes := min(wide, len(b.planes)-plane)
		for first := 0; first < b.count; {
			n := many
			if up && at < ends || !up && at >= whole-ends {
				n = few
			}
			n = min(n, b.count-first)
			b.pieces = append(b.pieces, BlockPiece{at, plane, planes, first, n})
			at, first = at+planes*n*b.size, first+n
			bounds = append(bounds, at)
		}
	}
	return bounds
}

// Piece returns the piece that begins there. It is for Driver.
func (b *Blocks) Piece(begin int) BlockPiece {
	return b.pieces[sort.Search(len(b.pieces), func(i int) bool { return b.pieces[i].Begin >= begin })]
}

// Most returns how many blocks of a plane a piece has at most. It is for Driver.
func (b *Blocks) Most() (most int) {
	for _, p := range b.pieces {
		most = max(most, p.Count)
	}
	return most
}

func (b *Blocks) each(begin, _ int, visit func(bytes []byte, at int)) {
	piece, at := b.Piece(begin), begin
	for _, p := range b.planes[piece.Plane : piece.Plane+piece.Planes] {
		for k, end := piece.First, piece.First+piece.Count; k < end; {
			block, n := b.number(k), 1
			for p.Stride == b.size && k+n < end && b.number(k+n) == block+n {
				n++
			}
			visit(memory(p.Address+backends.Address(block*p.Stride), n*b.size), at)
			k, at = k+n, at+n*b.size
		}
	}
}

func (b *Blocks) number(k int) int {
	if b.index == nil {
		return k
	}
	return int(b.index[k])
}

func memory(at backends.Address, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n)
}
