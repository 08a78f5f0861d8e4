package cuda

import "unsafe"

// observedCall is what a call of the driver is of: how it is read before it, and after it.
type observedCall struct {
	before, after func(o *observer, c *observed)
	perThread     bool // the default stream is the thread's
}

// observed is a call that is told of.
type observed struct {
	*callOf
	observedCall
}

// word is the i-th of eight bytes of the call's parameters.
func (c *observed) word(i uintptr) uintptr {
	return *(*uintptr)(unsafe.Add(c.parameters, 8*i))
}

// Numbers of cupti_driver_cbid.h: of each function, and of the same where the default stream is each
// thread's, or 0.
var observedCalls = func() map[uint32]observedCall {
	calls := map[uint32]observedCall{}
	add := func(number, perThread uint32, before, after func(o *observer, c *observed)) {
		calls[number] = observedCall{before: before, after: after}
		if perThread != 0 {
			calls[perThread] = observedCall{before: before, after: after, perThread: true}
		}
	}
	refused := (*observer).refused
	launches := map[uint32]launchedBy{307: launchKernel, 442: launchKernel, 477: launchCooperative, 478: launchCooperative,
		652: launchEx, 653: launchEx}
	for number, by := range launches {
		before := func(o *observer, c *observed) { o.launches(c, by) }
		calls[number] = observedCall{before: before, after: refused,
			perThread: number == 442 || number == 478 || number == 653}
	}

	// Copies: where target, source, size and stream are; -1 is no stream.
	copies := func(number, perThread uint32, target, source, size, stream int) {
		after := refused
		if stream < 0 {
			after = (*observer).copied
		}
		add(number, perThread, func(o *observer, c *observed) { o.copies(c, target, source, size, stream) }, after)
	}
	copies(305, 408, 0, 1, 2, -1) // cuMemcpy
	copies(276, 397, 0, 1, 2, -1) // cuMemcpyHtoD_v2
	copies(278, 398, 0, 1, 2, -1) // cuMemcpyDtoH_v2
	copies(318, 409, 0, 2, 4, -1) // cuMemcpyPeer
	copies(277, 421, 0, 1, 2, 3)  // cuMemcpyHtoDAsync_v2
	copies(281, 423, 0, 1, 2, 3)  // cuMemcpyDtoDAsync_v2
	copies(319, 426, 0, 2, 4, 5)  // cuMemcpyPeerAsync
	withinDevices := func(o *observer, c *observed) { o.copies(c, 0, 1, 2, -1) }
	add(280, 399, withinDevices, (*observer).copiedOnDevice) // cuMemcpyDtoD_v2
	toHost := func(o *observer, c *observed) { o.copies(c, 0, 1, 2, 3) }
	for _, number := range [][2]uint32{{279, 422}, {306, 418}} { // cuMemcpyDtoHAsync_v2, cuMemcpyAsync
		add(number[0], number[1], toHost, (*observer).copiedToHost)
	}
	for _, flat := range [][2]uint32{{287, 405}, {288, 406}} { // cuMemcpy2D_v2, cuMemcpy2DUnaligned_v2
		add(flat[0], flat[1], func(o *observer, c *observed) { o.copiesBox(c, flatBox, -1) }, (*observer).copied)
	}
	// cuMemcpy2DAsync_v2
	add(289, 424, func(o *observer, c *observed) { o.copiesBox(c, flatBox, 1) }, (*observer).copiedBox)
	// cuMemcpy3D_v2, cuMemcpy3DPeer
	for _, deep := range [][2]uint32{{290, 407}, {320, 410}} {
		add(deep[0], deep[1], func(o *observer, c *observed) { o.copiesBox(c, deepBox, -1) }, (*observer).copied)
	}
	for _, deep := range [][2]uint32{{291, 425}, {321, 427}} { // cuMemcpy3DAsync_v2, cuMemcpy3DPeerAsync
		add(deep[0], deep[1], func(o *observer, c *observed) { o.copiesBox(c, deepBox, 1) }, (*observer).copiedBox)
	}
	batch := func(stream uintptr) func(o *observer, c *observed) {
		return func(o *observer, c *observed) { o.copiesBatch(c, stream) }
	}
	add(837, 838, func(o *observer, c *observed) { o.copies(c, 0, 1, 2, 4) }, refused) // cuMemcpyWithAttributesAsync
	add(796, 797, batch(7), refused)                                                   // cuMemcpyBatchAsync_v2
	add(776, 777, batch(8), refused)                                                   // cuMemcpyBatchAsync

	// Fills: the bytes of an element, whether in rows, and where the stream is.
	fills := func(number, perThread uint32, width uintptr, rows bool, stream int) {
		after := refused
		if stream < 0 {
			after = (*observer).filled
		}
		add(number, perThread, func(o *observer, c *observed) { o.fills(c, width, rows, stream) }, after)
	}
	for i, width := range []uintptr{1, 2, 4} {
		n := uint32(i)
		fills(249+n, 411+n, width, false, -1) // cuMemsetD8_v2 …
		fills(252+n, 414+n, width, true, -1)  // cuMemsetD2D8_v2 …
		fills(216+2*n, 428+n, width, false, 3)
		fills(222+2*n, 431+n, width, true, 5)
	}
	add(514, 515, (*observer).launchesGraph, refused) // cuGraphLaunch

	// Order.
	add(119, 441, (*observer).records, (*observer).records)                   // cuEventRecord
	add(587, 588, (*observer).recordsWithFlags, (*observer).recordsWithFlags) // cuEventRecordWithFlags
	add(295, 436, (*observer).waits, nil)                                     // cuStreamWaitEvent
	add(325, 0, (*observer).forgets, nil)                                     // cuEventDestroy_v2
	for _, event := range []uint32{120, 121} {                                // cuEventQuery, cuEventSynchronize
		add(event, 0, nil, (*observer).reached)
	}
	for _, time := range []uint32{123, 780} { // cuEventElapsedTime, …_v2
		add(time, 0, nil, (*observer).elapsed)
	}
	add(125, 439, nil, (*observer).streamOver) // cuStreamQuery
	add(126, 440, nil, (*observer).streamOver) // cuStreamSynchronize
	for _, all := range []uint32{
		17,  // cuCtxSynchronize
		245, // cuMemFree_v2, which waits for the device
		38,  // cuMemFreeHost
		302, // cuMemHostUnregister
	} {
		add(all, 0, nil, (*observer).allOver)
	}
	add(800, 0, nil, (*observer).itsContextOver) // cuCtxSynchronize_v2
	add(124, 0, nil, (*observer).made)           // cuStreamCreate
	// cuStreamCreateWithPriority
	add(367, 0, nil, (*observer).made)
	add(326, 0, (*observer).destroys, nil) // cuStreamDestroy_v2
	// cuStreamBeginCapture, …_v2, …ToGraph, cuStreamBeginRecaptureToGraph
	for _, begin := range [][2]uint32{{495, 496}, {539, 540}, {720, 721}, {846, 847}, {783, 814}} {
		add(begin[0], begin[1], nil, (*observer).captures)
	}
	add(497, 498, nil, (*observer).captured) // cuStreamEndCapture
	add(815, 816, nil, (*observer).captured) // cuStreamEndCaptureToCig
	// cuStreamWaitValue32, …64, …32_v2, …64_v2
	for _, value := range [][2]uint32{{458, 459}, {473, 474}, {659, 660}, {661, 662}} {
		add(value[0], value[1], (*observer).waitsForAny, nil)
	}
	add(492, 493, (*observer).waitsForSemaphores, nil) // cuWaitExternalSemaphoresAsync
	addUnseen(add)
	for _, unload := range []uint32{22, 680} { // cuModuleUnload, cuLibraryUnload
		add(unload, 0, (*observer).unloads, nil)
	}
	// cuCtxDestroy_v2, cuDevicePrimaryCtxRelease, …_v2, cuDevicePrimaryCtxReset, …_v2
	for _, ends := range []uint32{322, 387, 544, 389, 545} {
		add(ends, 0, nil, (*observer).contextEnds)
	}
	return calls
}()

// addUnseen adds calls of which others come to know what is not told of.
func addUnseen(add func(number, perThread uint32, before, after func(o *observer, c *observed))) {
	for _, signal := range [][2]uint32{
		{346, 437},             // cuStreamAddCallback
		{527, 528}, {831, 832}, // cuLaunchHostFunc, …_v2
		{460, 461}, {475, 476}, {663, 664}, {665, 666}, // cuStreamWriteValue32, …64, …32_v2, …64_v2
	} {
		add(signal[0], signal[1], (*observer).signals, (*observer).signals)
	}
	for _, both := range [][2]uint32{{462, 463}, {667, 668}} { // cuStreamBatchMemOp, …_v2
		add(both[0], both[1], func(o *observer, c *observed) { o.waitsForAny(c); o.signals(c) }, (*observer).signals)
	}
	add(490, 491, (*observer).signalsSemaphores, (*observer).signalsSemaphores) // cuSignalExternalSemaphoresAsync
	add(335, 0, nil, (*observer).opensEvent)                                    // cuIpcOpenEventHandle
	// cuGraphAddEventRecordNode, and two …SetEvent
	for number, event := range map[uint32]uintptr{589: 4, 593: 1, 595: 2} {
		add(number, 0, func(o *observer, c *observed) { o.isUnseen(c.word(event)) }, nil)
	}
	for _, of := range []uint32{
		// cuGraphAddHostNode, …BatchMemOpNode, …ExternalSemaphoresSignalNode, …WaitNode, …EventWaitNode
		530, 669, 618, 621, 590,
		594, 596, 713, 714, 864, // cuGraphEventWaitNodeSetEvent, cuGraphExec…, cuGraphNodeSetParams, cuGraphExec…, …_v2
	} {
		add(of, 0, (*observer).graphHasMore, nil)
	}
	add(334, 0, nil, (*observer).exportsEvent)                 // cuIpcGetEventHandle
	add(743, 0, nil, (*observer).divides)                      // cuGreenCtxCreate
	for _, pool := range [][2]uint32{{598, 599}, {611, 612}} { // cuMemAllocAsync, cuMemAllocFromPoolAsync
		add(pool[0], pool[1], nil, (*observer).allocated)
	}
	for number, parameters := range map[uint32]uintptr{712: 4, 723: 5, 863: 5} { // cuGraphAddNode, …_v2, …_v3
		add(number, 0, func(o *observer, c *observed) { o.addsNode(c, c.word(parameters)) }, nil)
	}
	for _, of := range []uint32{755, 749} { // cuCtxRecordEvent, cuGreenCtxRecordEvent
		add(of, 0, nil, (*observer).recordsAll)
	}
	for _, of := range []uint32{756, 750} { // cuCtxWaitEvent, cuGreenCtxWaitEvent
		add(of, 0, (*observer).allWait, nil)
	}
}
