package cuda

import (
	"errors"
	"slices"
	"unsafe"

	"hamr/backends"
)

// dim is one dimension of both arrays: how many, and the strides in bytes.
type dim struct{ n, d, s int }

// conversion is a Convert whose elements are reduced to what the kernels know, and whose dimensions are merged and in
// the order of the target's memory, outermost first. None has one index, or goes down in the target.
type conversion struct {
	dst, src backends.Address
	dt, st   kernelType
	copied   int // bytes of an element where elements are only copied, a power of two; else 0
	dims     []dim
}

// step is a kernel to be launched: the one argument that is not nil says which.
type step struct {
	convert   *convertArgument
	line      *lineArgument
	transpose *transposeArgument
	blocks    int // that would have something to do
}

func (s step) kernel() (name string, argument unsafe.Pointer, size uintptr) {
	switch {
	case s.line != nil:
		return lineKernel, unsafe.Pointer(s.line), unsafe.Sizeof(*s.line)
	case s.transpose != nil:
		return transposeKernel, unsafe.Pointer(s.transpose), unsafe.Sizeof(*s.transpose)
	}
	return convertKernel, unsafe.Pointer(s.convert), unsafe.Sizeof(*s.convert)
}

// plain is a copy of bytes that follow one another.
type plain struct {
	dst, src backends.Address
	bytes    int
}

// plan says how to make dst of src: by launching steps, in any order, or by a plain copy, or, without elements, by
// neither. A step has at most limit elements. The error is errors.ErrUnsupported.
func plan(dst, src backends.Strided, limit int) ([]step, plain, error) {
	if !slices.Equal(dst.Shape, src.Shape) || len(dst.Strides) != len(dst.Shape) || len(src.Strides) != len(src.Shape) {
		return nil, plain{}, errors.ErrUnsupported
	}
	c, ok := newConversion(dst, src)
	if !ok {
		return nil, plain{}, errors.ErrUnsupported
	}
	if slices.Contains(dst.Shape, 0) {
		return nil, plain{}, nil
	}
	if c.copied > 0 && c.contiguous() {
		return nil, plain{c.dst, c.src, c.count() * c.copied}, nil
	}
	var steps []step
	for _, part := range c.parts(limit) {
		if len(part.dims) > mostDimensions {
			return nil, plain{}, errors.ErrUnsupported
		}
		steps = part.steps(steps)
	}
	return steps, plain{}, nil
}

// newConversion fails for elements that no kernel converts.
func newConversion(dst, src backends.Strided) (*conversion, bool) {
	c := &conversion{dst: dst.Address, src: src.Address}
	de, se := dst.Element, src.Element
	inside := dim{n: 1}
	// Complex numbers are converted by their parts, or by the real ones.
	if se.Kind == backends.ComplexNumber && de.Kind != backends.Boolean && !sameBits(de, se) {
		se.Kind, se.Size = backends.Float, se.Size/2
		if de.Kind == backends.ComplexNumber {
			de.Kind, de.Size = backends.Float, de.Size/2
			inside = dim{2, de.Size, se.Size}
		}
	}
	if sameBits(de, se) {
		c.copied = pieceOf(de.Size, dst, src)
		inside = dim{de.Size / c.copied, c.copied, c.copied}
	} else {
		var known, alsoKnown bool
		c.dt, known = kernelTypes[de]
		c.st, alsoKnown = kernelTypes[se]
		if !known || !alsoKnown {
			return nil, false
		}
	}
	for i, n := range dst.Shape {
		c.add(dim{n, dst.Strides[i], src.Strides[i]})
	}
	slices.SortStableFunc(c.dims, func(a, b dim) int {
		if a.d != b.d {
			return b.d - a.d
		}
		return magnitude(b.s) - magnitude(a.s)
	})
	c.add(inside)
	c.merge()
	for c.copied > 0 && c.copied < largestPiece && c.doublePiece() {
		continue
	}
	return c, true
}

func (c *conversion) add(d dim) {
	if d.n == 1 {
		return
	}
	if d.d < 0 {
		c.dst += backends.Address((d.n - 1) * d.d)
		c.src += backends.Address((d.n - 1) * d.s)
		d.d, d.s = -d.d, -d.s
	}
	c.dims = append(c.dims, d)
}

func magnitude(v int) int { return max(v, -v) }

func (c *conversion) merge() {
	merged := c.dims[:0]
	for _, d := range c.dims {
		if last := len(merged) - 1; last >= 0 && merged[last].d == d.n*d.d && merged[last].s == d.n*d.s {
			merged[last] = dim{merged[last].n * d.n, d.d, d.s}
			continue
		}
		merged = append(merged, d)
	}
	c.dims = merged
}

// sameBits reports whether converting means copying.
func sameBits(a, b backends.Element) bool {
	integer := func(k backends.ElementKind) bool { return k == backends.Signed || k == backends.Unsigned }
	return a.Size == b.Size && a.Size > 0 && (a.Kind == b.Kind || integer(a.Kind) && integer(b.Kind))
}

// largestPiece is the most bytes that a thread moves at once.
const largestPiece = 16

// pieceOf is the largest piece of an element of so many bytes whose addresses are all multiples of its size.
func pieceOf(size int, arrays ...backends.Strided) int {
	piece := largestPiece
	fits := func(a backends.Strided) bool {
		return int(a.Address)%piece == 0 && !slices.ContainsFunc(a.Strides, func(s int) bool { return s%piece != 0 })
	}
	for size%piece != 0 || !fits(arrays[0]) || !fits(arrays[1]) {
		piece /= 2
	}
	return piece
}

// doublePiece makes one piece of two that are neighbours on both sides, if that leaves none alone.
func (c *conversion) doublePiece() bool {
	last := len(c.dims) - 1
	if last < 0 || c.dims[last].n%2 != 0 || c.dims[last].d != c.copied || c.dims[last].s != c.copied {
		return false
	}
	if !c.multiples(2*c.copied, 2*c.copied, c.dims[:last]) {
		return false
	}
	c.copied *= 2
	c.dims[last] = dim{c.dims[last].n / 2, c.copied, c.copied}
	if c.dims[last].n == 1 {
		c.dims = c.dims[:last]
	}
	return true
}

// multiples reports whether the addresses and the dimensions' strides are multiples
// of d in the target and of s in the source.
func (c *conversion) multiples(d, s int, dims []dim) bool {
	return int(c.dst)%d == 0 && int(c.src)%s == 0 &&
		!slices.ContainsFunc(dims, func(v dim) bool { return v.d%d != 0 || v.s%s != 0 })
}

func (c *conversion) count() int {
	count := 1
	for _, d := range c.dims {
		count *= d.n
	}
	return count
}

func (c *conversion) contiguous() bool {
	return len(c.dims) == 0 || len(c.dims) == 1 && c.dims[0].d == c.copied && c.dims[0].s == c.copied
}

// parts cuts c along its outer dimensions into parts of at most limit elements, which is at least 64.
func (c *conversion) parts(limit int) []*conversion {
	count := c.count()
	if count <= limit {
		return []*conversion{c}
	}
	outer := c.dims[0]
	each := limit / (count / outer.n)
	if each >= 64 {
		each -= each % 64 // What was aligned stays aligned.
	}
	var parts []*conversion
	for at, n := 0, 0; at < outer.n; at += n {
		n = min(max(each, 1), outer.n-at)
		part := *c
		part.dst += backends.Address(at * outer.d)
		part.src += backends.Address(at * outer.s)
		part.dims = slices.Clone(c.dims)
		part.dims[0].n = n
		if n == 1 {
			part.dims = part.dims[1:]
		}
		parts = append(parts, part.parts(limit)...)
	}
	return parts
}

// steps appends what c, which has no more dimensions and elements than a kernel takes, needs.
func (c *conversion) steps(steps []step) []step {
	if s, ok := c.transposeStep(); ok {
		return append(steps, s)
	}
	width := c.width()
	left := 0
	if width > 1 {
		left = c.dims[0].n % width
	}
	if width == 1 || left > 0 && c.count() < fewestForTwo {
		return append(steps, c.convertStep())
	}
	steps = append(steps, c.lineStep(width))
	if left > 0 {
		from := c.dims[0].n - left
		tail := *c
		tail.dst += backends.Address(from * c.dims[0].d)
		tail.src += backends.Address(from * c.dims[0].s)
		tail.dims = []dim{{left, c.dims[0].d, c.dims[0].s}}
		steps = append(steps, tail.convertStep())
	}
	return steps
}

// fewestForTwo elements are worth a second launch, for those that make no group.
const fewestForTwo = 1 << 16

// width is how many elements one thread can load and store as one word: neighbours on both sides, at addresses that are
// multiples of all their bytes. It is 1 for what hamr_convert_line does not do.
func (c *conversion) width() int {
	if c.copied > 0 || c.dt.complex() || c.st.complex() || len(c.dims) != 1 {
		return 1
	}
	line, dsize, ssize := c.dims[0], c.dt.part(), c.st.part()
	width := min(8, largestPiece/max(dsize, ssize))
	for line.d == dsize && line.s == ssize && width > 1 {
		if line.n >= width && c.multiples(width*dsize, width*ssize, nil) {
			return width
		}
		width /= 2
	}
	return 1
}

func (c *conversion) lineStep(width int) step {
	const batch = 8 // elements that a thread converts at once
	groups := c.dims[0].n / width
	a := &lineArgument{
		source: uint64(c.src), target: uint64(c.dst), sourceType: c.st, targetType: c.dt,
		width: uint32(width), groups: uint32(groups),
	}
	return step{line: a, blocks: blocksOf(groups, kernelThreads*batch/width)}
}

// fewestAcross is from where a dimension is worth tiles.
const fewestAcross = 8

// transposeStep serves copies whose fastest dimension is not the same on both sides.
func (c *conversion) transposeStep() (step, bool) {
	last := len(c.dims) - 1
	if c.copied == 0 || last < 1 || last-1 > mostBatch {
		return step{}, false
	}
	fastest := last
	for i, d := range c.dims {
		if d.s != 0 && magnitude(d.s) < magnitude(c.dims[fastest].s) {
			fastest = i
		}
	}
	row, column := c.dims[fastest], c.dims[last]
	if fastest == last || row.n < fewestAcross || column.n < fewestAcross {
		return step{}, false
	}
	side := 32
	if c.copied <= 4 {
		side = 64
	}
	a := &transposeArgument{
		source: uint64(c.src), target: uint64(c.dst), size: uint32(c.copied),
		rows: uint32(row.n), columns: uint32(column.n), dimensions: uint32(last - 1),
		rowSourceStride: int64(row.s), rowTargetStride: int64(row.d),
		columnSourceStride: int64(column.s), columnTargetStride: int64(column.d),
	}
	across, down := blocksOf(column.n, side), blocksOf(row.n, side)
	tiles := across * down
	a.insideOut[0], a.insideOut[1] = dimensionOf(dim{n: across}), dimensionOf(dim{n: down})
	rest := slices.Delete(slices.Clone(c.dims[:last]), fastest, fastest+1)
	slices.Reverse(rest)
	for i, d := range rest {
		tiles *= d.n
		a.insideOut[2+i] = dimensionOf(d)
	}
	a.tiles = uint32(tiles)
	return step{transpose: a, blocks: tiles}, true
}

func blocksOf(n, size int) int { return (n + size - 1) / size }

// convertStep serves all else.
func (c *conversion) convertStep() step {
	const batch = 4 // elements that a thread converts at once
	a := &convertArgument{
		source: uint64(c.src), target: uint64(c.dst), sourceType: c.st, targetType: c.dt, count: uint32(c.count()),
	}
	if c.copied > 0 {
		a.sourceType = copiedTypes[c.copied]
		a.targetType = a.sourceType
	} else {
		if !c.multiples(c.dt.part(), 1, c.dims) {
			a.targetBytewise = 1
		}
		if !c.multiples(1, c.st.part(), c.dims) {
			a.sourceBytewise = 1
		}
	}
	dims := c.dims
	if len(dims) == 0 {
		dims = []dim{{n: 1}}
	}
	for i, d := range dims {
		a.insideOut[len(dims)-1-i] = dimensionOf(d)
	}
	a.dimensions = uint32(len(dims))
	return step{convert: a, blocks: blocksOf(c.count(), kernelThreads*batch)}
}

// planFill says what hamr_fill needs to repeat pattern, of 1 to 16 bytes, count times.
func planFill(dst backends.Address, pattern []byte, count int) (a *fillArgument, blocks int) {
	a = &fillArgument{target: uint64(dst), bytes: uint64(len(pattern)) * uint64(count), period: uint32(len(pattern))}
	for at := 0; at < len(a.pattern); {
		at += copy(a.pattern[at:], pattern)
	}
	const bytesOfThread = 64
	return a, blocksOf(len(pattern)*count, kernelThreads*bytesOfThread)
}
