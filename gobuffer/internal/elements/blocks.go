package elements

import "unsafe"

// Plane is an array of blocks at both ends. Block i begins i strides behind the pointer.
type Plane struct {
	Dst, Src             unsafe.Pointer
	DstStride, SrcStride int // bytes
}

// MoveBlocks makes block to[k] of each plane's Dst block from[k] of its Src, for count of them. A list that is nil is
// 0, 1, 2, … Blocks have size bytes. No target shares bytes with another one, or with a source.
func MoveBlocks(planes []Plane, size int, to, from []int64, count int) {
	if bytes := len(planes) * count * size; len(planes)*count >= maxWorkers || bytes < parallelBytes {
		inParallel(len(planes)*count, bytes, func(first, end int) {
			for first < end {
				p, k := first/count, first%count
				n := min(end-first, count-k)
				planes[p].move(size, to, from, k, n)
				first += n
			}
		})
		return
	}
	for _, p := range planes {
		for k := range count {
			moveParallel(unsafe.Add(p.Dst, blockAt(to, k)*p.DstStride), unsafe.Add(p.Src, blockAt(from, k)*p.SrcStride), size)
		}
	}
}

// move moves n blocks from the k-th on. Neighbours at both ends are moved at once.
func (p Plane) move(size int, to, from []int64, k, n int) {
	dense := p.DstStride == size && p.SrcStride == size
	for i := k; i < k+n; {
		d, s, next := blockAt(to, i), blockAt(from, i), i+1
		for dense && next < k+n && blockAt(to, next) == d+next-i && blockAt(from, next) == s+next-i {
			next++
		}
		moveBlock(unsafe.Add(p.Dst, d*p.DstStride), unsafe.Add(p.Src, s*p.SrcStride), (next-i)*size)
		i = next
	}
}

// moveBlock looks, as a loop of moves alone does not.
//
//go:noinline
func moveBlock(dst, src unsafe.Pointer, bytes int) {
	const most = pieceLen * 8
	for ; bytes > most; bytes -= most {
		moveBlock(dst, src, most)
		dst, src = unsafe.Add(dst, most), unsafe.Add(src, most)
	}
	move(dst, src, bytes)
}

func blockAt(list []int64, k int) int {
	if list == nil {
		return k
	}
	return int(list[k])
}
