#include "textflag.h"

// func copyBlocks(to, from unsafe.Pointer, blocks int)
//
// A block is 256 bytes; to is aligned to 32. What is written goes past the caches: lines that
// are written as a whole need not be read before, and the reader is elsewhere.
TEXT ·copyBlocks(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ blocks+16(FP), CX

next:
	PREFETCHT0 1024(SI)
	PREFETCHT0 1088(SI)
	PREFETCHT0 1152(SI)
	PREFETCHT0 1216(SI)
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VMOVDQU    64(SI), Y2
	VMOVDQU    96(SI), Y3
	VMOVDQU    128(SI), Y4
	VMOVDQU    160(SI), Y5
	VMOVDQU    192(SI), Y6
	VMOVDQU    224(SI), Y7
	VMOVNTDQ   Y0, (DI)
	VMOVNTDQ   Y1, 32(DI)
	VMOVNTDQ   Y2, 64(DI)
	VMOVNTDQ   Y3, 96(DI)
	VMOVNTDQ   Y4, 128(DI)
	VMOVNTDQ   Y5, 160(DI)
	VMOVNTDQ   Y6, 192(DI)
	VMOVNTDQ   Y7, 224(DI)
	ADDQ       $256, SI
	ADDQ       $256, DI
	DECQ       CX
	JNZ        next
	SFENCE
	VZEROUPPER
	RET

// func relax()
TEXT ·relax(SB), NOSPLIT, $0-0
	PAUSE
	PAUSE
	PAUSE
	PAUSE
	RET
