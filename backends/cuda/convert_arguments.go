package cuda

import "math/bits"

// The kernels in kernels/, and what they are told: mirrors of kernels/arguments.h.
const (
	convertKernel   = "hamr_convert"
	lineKernel      = "hamr_convert_line"
	transposeKernel = "hamr_transpose"
	fillKernel      = "hamr_fill"
	copyKernel      = "hamr_copy"
)

// kernelThreads is how many threads a block has; hamr_transpose relies on it.
const kernelThreads = 256

// copiedTypes are the types as which elements of so many bytes are copied.
var copiedTypes = map[int]kernelType{
	1: kernelUnsigned8, 2: kernelUnsigned16, 4: kernelUnsigned32, 8: kernelUnsigned64, 16: kernelOpaque128,
}

// part is the bytes of an element, or of one part of a complex number: what is
// loaded or stored at once.
func (t kernelType) part() int { return kernelParts[t] }

func (t kernelType) complex() bool { return t == kernelComplex64 || t == kernelComplex128 }

const (
	// mostDimensions counts one inside an element on top of the array's eight.
	mostDimensions = 9
	// mostBatch is what the two dimensions of a tile leave of them.
	mostBatch = mostDimensions - 2
	// mostInLaunch bounds the elements of a launch, so that the kernels count in
	// 32 bits with room for the steps beyond the end.
	mostInLaunch = 1 << 30
)

type kernelDimension struct {
	count, multiplier, shift, unused uint32
	sourceStride, targetStride       int64
}

type convertArgument struct {
	source, target                 uint64
	sourceType, targetType         kernelType
	count, dimensions              uint32
	sourceBytewise, targetBytewise uint32
	insideOut                      [mostDimensions]kernelDimension
}

type lineArgument struct {
	source, target         uint64
	sourceType, targetType kernelType
	width, groups          uint32
}

type transposeArgument struct {
	source, target                         uint64
	size, tiles, dimensions                uint32
	rows, columns, unused                  uint32
	rowSourceStride, rowTargetStride       int64
	columnSourceStride, columnTargetStride int64
	insideOut                              [mostDimensions]kernelDimension
}

type fillArgument struct {
	target, bytes  uint64
	pattern        [32]byte
	period, unused uint32
}

// mostRuns is how many copies one launch of hamr_copy makes.
const mostRuns = 168

type copyRun struct {
	target, source uint64
	bytes, first   uint32
}

type copyArgument struct {
	words, count uint32
	runs         [mostRuns]copyRun
}

// dimensionOf prepares division by d.n, which is 1 to 2³⁰: the quotient of any
// dividend below 2³¹ is (high half of dividend·multiplier + dividend) >> shift.
// With 2³² added the multiplier is 2^(32+shift)/n rounded up, by so little that no
// quotient reaches the next integer.
func dimensionOf(d dim) kernelDimension {
	shift := bits.Len32(uint32(d.n) - 1)
	multiplier := (1<<shift-uint64(d.n))<<32/uint64(d.n) + 1
	return kernelDimension{
		count: uint32(d.n), multiplier: uint32(multiplier), shift: uint32(shift),
		sourceStride: int64(d.s), targetStride: int64(d.d),
	}
}
