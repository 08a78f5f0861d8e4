package cuda

import "unsafe"

// The kernels of kernels/blocks.h.
const (
	checkBlocksKernel  = "hamr_check_blocks"
	settleBlocksKernel = "hamr_settle_blocks"
	copyBlocksKernel   = "hamr_copy_blocks"
	copyIndexedKernel  = "hamr_copy_indexed"
)

// Mirrors of kernels/arguments.h.
const (
	noBlock        = ^uint32(0)
	nothingFailed  = ^uint64(0)
	planeWords     = 4
	mostBlockWords = 492
	mostChecked    = 2048
	wordsInFlight  = 4
)

type blockIndex struct {
	address       uint64
	width, extent uint32
}

type checkArgument struct {
	to, from         blockIndex
	pairs, state     uint64
	table            uint64
	tableBits, count uint32
}

type blockPair struct{ to, from uint32 }

const pairSize = int(unsafe.Sizeof(blockPair{}))

type blockReport struct {
	failed uint64
	value  int64
}

type blocksArgument struct {
	pairs                             uint64
	to, from                          blockIndex
	state, report                     uint64
	repeated, words, wordSize, planes uint32
	wordsOfBlock, pairsOfPlane        kernelDimension
	room                              [mostBlockWords]uint64
}
