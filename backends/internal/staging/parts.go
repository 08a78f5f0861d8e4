package staging

import "sort"

// Parts is host memory of one transfer, in the order of Start and without overlaps.
type Parts []Part

// Part is bytes that lie side by side.
type Part struct {
	// Start is how many bytes after the transfer's beginning they come.
	Start int
	Bytes []byte
}

// Whole is host memory that is one part.
func Whole(bytes []byte) Parts { return Parts{{0, bytes}} }

// betweenParts is what the beginnings of parts are multiples of, so that a device copies
// their elements in its largest words, and no two threads write to one line of its cache.
const betweenParts = 256

// Add appends bytes behind the last part.
func (p Parts) Add(bytes []byte) Parts {
	return append(p, Part{(p.Size() + betweenParts - 1) / betweenParts * betweenParts, bytes})
}

// Size implements Host: it is the length of the transfer.
func (p Parts) Size() int {
	if len(p) == 0 {
		return 0
	}
	last := p[len(p)-1]
	return last.Start + len(last.Bytes)
}

// Each calls visit for what of the parts lies from begin on and before end: which part, and
// which of its bytes.
func (p Parts) Each(begin, end int, visit func(part, from, to int)) {
	first := sort.Search(len(p), func(i int) bool { return p[i].Start+len(p[i].Bytes) > begin })
	for i := first; i < len(p) && p[i].Start < end; i++ {
		visit(i, max(begin-p[i].Start, 0), min(end-p[i].Start, len(p[i].Bytes)))
	}
}

func (p Parts) least() int { return 1 }

func (p Parts) each(begin, end int, visit func(bytes []byte, at int)) {
	p.Each(begin, end, func(part, from, to int) { visit(p[part].Bytes[from:to], p[part].Start+from) })
}
