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
	// cut returns where pieces begin, and where the last one ends. fold pieces after one another, with the rest at the
	// end, are the load of a chunk and have at most size bytes together. Some small loads have a quarter of that.
	cut(size, fold, small int, up bool) []int
	// each calls visit for the bytes of a piece, and where in the transfer they come.
	each(begin, end int, visit func(bytes []byte, at int))
}

// Blocks is host memory of one transfer: equally large blocks of some planes. Each load has some blocks of some planes,
// those of a plane one after the other.
type Blocks struct {
	planes []BlockPlane
	index  []int64 // of which blocks; nil counts
	size   int     // of a block
	count  int     // of the blocks of a plane
	loads  []BlockLoad
}

// BlockPlane is where block 0 of a plane lies, and how far the next one is.
type BlockPlane struct {
	Address backends.Address
	Stride  int
}

// BlockLoad is Count blocks, from the number First on, of Planes planes.
type BlockLoad struct {
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

func (b *Blocks) cut(size, fold, small int, up bool) []int {
	wide := min(max(size/b.size, 1), len(b.planes))
	row, whole := wide*b.size, b.Size()
	many := max(size/row, 1)
	few := max(many/quarter, 1)
	ends := min(small, whole/quarter/(few*row)) * few * row
	bounds, at := []int{0}, 0
	b.loads = nil
	for plane := 0; plane < len(b.planes); plane += wide {
		planes := min(wide, len(b.planes)-plane)
		for first := 0; first < b.count; {
			n := many
			if up && at < ends || !up && at >= whole-ends {
				n = few
			}
			n = min(n, b.count-first)
			b.loads = append(b.loads, BlockLoad{at, plane, planes, first, n})
			for i := range fold {
				bounds = append(bounds, at+(i+1)*planes*n/fold*b.size)
			}
			at, first = at+planes*n*b.size, first+n
		}
	}
	return bounds
}

// Load returns the load that has a byte of the transfer. It is for Driver.
func (b *Blocks) Load(at int) BlockLoad {
	return b.loads[sort.Search(len(b.loads), func(i int) bool { return b.loads[i].Begin > at })-1]
}

// Most returns how many blocks of a plane a load has at most. It is for Driver.
func (b *Blocks) Most() (most int) {
	for _, l := range b.loads {
		most = max(most, l.Count)
	}
	return most
}

func (b *Blocks) each(begin, end int, visit func(bytes []byte, at int)) {
	for l := b.Load(begin); begin < end; {
		nth := (begin - l.Begin) / b.size
		p, k := b.planes[l.Plane+nth/l.Count], l.First+nth%l.Count
		block, n := b.number(k), 1
		for most := min(l.First+l.Count-k, (end-begin)/b.size); p.Stride == b.size && n < most &&
			b.number(k+n) == block+n; {
			n++
		}
		visit(memory(p.Address+backends.Address(block*p.Stride), n*b.size), begin)
		begin += n * b.size
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
