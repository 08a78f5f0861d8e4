package staging

import "unsafe"

// quarter is what part of a piece the first ones of an upload are, and the last ones of a
// download: while they are copied the bus is idle.
const quarter = 4

// smallestCut is the smallest size of pieces that a quarter of is worth a call of the driver.
const smallestCut = 1 << 20

// cut has all pieces begin at multiples of their size in memory: processors copy what is aligned alike faster, and two
// workers in one huge page that the system has yet to find would each have it cleared. What lies apart is cut anywhere.
func (p Parts) cut(size, fold, small int, up bool) []int {
	size /= fold
	length, step := p.Size(), max(size/quarter, 1)
	small = min(small, length/quarter/step) * step
	start := 0
	if len(p) == 1 {
		start = int(uintptr(unsafe.Pointer(unsafe.SliceData(p[0].Bytes))))
	}
	c := cutter{start: start, bounds: make([]int, 1, length/size+small/step+3)}
	if up {
		c.to(small, step)
	} else {
		c.to(length-small, size)
		size = step
	}
	c.to(length, size)
	return c.bounds
}

type cutter struct {
	start  int // in memory
	bounds []int
}

// to cuts up to end.
func (c *cutter) to(end, size int) {
	for at := c.bounds[len(c.bounds)-1]; at < end; {
		at = min(at+size-(c.start+at)%size, end)
		c.bounds = append(c.bounds, at)
	}
}
