package cuda

import (
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// launchedBy says where a call that launches a kernel has its arguments.
type launchedBy uint8

const (
	launchKernel launchedBy = iota
	launchCooperative
	launchEx
)

const (
	configStream     = 32 // where CUlaunchConfig has the stream
	mostScanned      = 128
	parameterPointer = 1 // CU_LAUNCH_PARAM_BUFFER_POINTER
	mostParameters   = 1024
)

// launches reports a kernel. Nothing tells which of its parameters are pointers, so each that may be one counts, and
// what the kernel does there is unknown.
func (o *observer) launches(c *observed, by launchedBy) {
	var function, stream, parameters, extra uintptr
	if by == launchEx {
		o.recordedByKernel(c.word(0))
		stream = wordAt(c.word(0) + configStream)
		function, parameters, extra = c.word(1), c.word(2), c.word(3)
	} else {
		function, stream, parameters = c.word(0), c.word(5), c.word(6)
	}
	if by == launchKernel {
		extra = c.word(7)
	}
	handle := backends.Stream(stream)
	o.enqueues(c, handle, o.touchesOf(dl.Text(c.symbol), function, parameters, extra)...)
}

// at is memory of whoever calls the driver.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// wordAt returns zero where the address is missing, which the driver refuses.
func wordAt(address uintptr) uintptr {
	if address < leastAddress {
		return 0
	}
	return *(*uintptr)(at(address))
}

func halfAt(address uintptr) uint32 {
	if address < leastAddress {
		return 0
	}
	return *(*uint32)(at(address))
}

const leastAddress = 4096

// parameter is where a kernel's has its bytes, and how many.
type parameter struct{ offset, size int }

// ours are hamr's kernels, of kernels/arguments.h.
var ours = map[string]bool{"hamr_fill": true, "hamr_copy": true, "hamr_convert": true, "hamr_convert_line": true,
	"hamr_transpose": true, checkBlocksKernel: true, settleBlocksKernel: true,
	copyBlocksKernel: true, copyIndexedKernel: true}

func (o *observer) touchesOf(name string, function, parameters, extra uintptr) (touches []backends.Touch) {
	if ours[name] && parameters != 0 {
		return touchesOfOurs(name, wordAt(parameters))
	}
	packed := uintptr(0)
	for e := extra; e != 0 && wordAt(e) != 0; e += 16 {
		if wordAt(e) == parameterPointer {
			packed = wordAt(e + 8)
		}
	}
	for i, each := range o.sizesOf(function) {
		value, size := uintptr(0), each.size
		if parameters != 0 {
			value = wordAt(parameters + uintptr(8*i))
		} else if packed != 0 {
			value = packed + uintptr(each.offset)
		}
		if value == 0 {
			continue
		}
		// Words deep in a large structure may be stale, and never used.
		scanned := size
		//mutate:never all of a large structure is scanned
		if size > mostScanned {
			scanned = 8
		}
		for ; scanned >= 8; scanned, value = scanned-8, value+8 {
			if pointer := wordAt(value); pointer != 0 {
				touches = append(touches, backends.Touch{Address: backends.Address(pointer), Size: 1})
			}
		}
	}
	return touches
}

// sizesOf are the sizes of a kernel's parameters, as far as the driver says.
func (o *observer) sizesOf(function uintptr) []parameter {
	o.mutex.Lock()
	sizes, known := o.sizes[function]
	o.mutex.Unlock()
	if known || o.driver.FuncGetParamInfo == 0 {
		return sizes
	}
	out := new([2]uint64)
	for _, ask := range []uintptr{o.driver.FuncGetParamInfo, o.driver.KernelGetParamInfo} {
		for ask != 0 && len(sizes) < mostParameters {
			*out = [2]uint64{}
			if int32(dl.Call(ask, function, uintptr(len(sizes)), uintptr(unsafe.Pointer(&out[0])),
				uintptr(unsafe.Pointer(&out[1])))) != success {
				break
			}
			sizes = append(sizes, parameter{int(out[0]), int(out[1])})
		}
		if len(sizes) > 0 {
			break
		}
	}
	o.mutex.Lock()
	o.sizes[function] = sizes
	o.mutex.Unlock()
	return sizes
}

// touchesOfOurs are those of hamr's own kernels, by kernels/arguments.h.
func touchesOfOurs(name string, argument uintptr) (touches []backends.Touch) {
	touch := func(address uintptr, size int, writes backends.Writes) {
		if size == 0 {
			return
		}
		touches = append(touches, backends.Touch{Address: backends.Address(address), Size: size, Writes: writes})
	}
	switch name {
	case "hamr_fill":
		touch(wordAt(argument), int(wordAt(argument+8)), backends.DoesWrite)
	case "hamr_copy":
		for run := range uintptr(*(*uint32)(at(argument + 4))) {
			each := argument + 8 + 24*run
			size := int(*(*uint32)(at(each + 16)))
			touch(wordAt(each), size, backends.DoesWrite)
			touch(wordAt(each+8), size, backends.OnlyReads)
		}
	case checkBlocksKernel, settleBlocksKernel:
		a := (*checkArgument)(at(argument))
		for _, index := range []blockIndex{a.to, a.from} {
			touch(uintptr(index.address), int(index.width)*int(a.count), backends.OnlyReads)
		}
	case copyBlocksKernel, copyIndexedKernel: // nothing tells how far the indices go
		a := (*blocksArgument)(at(argument))
		for _, index := range []blockIndex{a.to, a.from} {
			touch(uintptr(index.address), int(index.width)*int(a.pairsOfPlane.count), backends.OnlyReads)
		}
		for plane := range int(a.planes) {
			touch(uintptr(a.room[planeWords*plane]), 1, backends.DoesWrite)
			touch(uintptr(a.room[planeWords*plane+1]), 1, backends.OnlyReads)
		}
	default:
		touch(wordAt(argument), 1, backends.OnlyReads)
		touch(wordAt(argument+8), 1, backends.DoesWrite)
	}
	return touches
}

// copies reports a copy of that many bytes. stream is -1 for the default one.
func (o *observer) copies(c *observed, target, source, size, stream int) {
	o.enqueues(c, c.streamAt(stream),
		copiedBetween(c.word(uintptr(target)), c.word(uintptr(source)), int(c.word(uintptr(size))))...)
}

func (c *observed) streamAt(i int) backends.Stream {
	if i < 0 {
		return defaultStream
	}
	return backends.Stream(c.word(uintptr(i)))
}

func copiedBetween(target, source uintptr, size int) []backends.Touch {
	return []backends.Touch{
		{Address: backends.Address(target), Size: size, Writes: backends.DoesWrite},
		{Address: backends.Address(source), Size: size, Writes: backends.OnlyReads},
	}
}

// copiesBatch reports many copies in one call.
func (o *observer) copiesBatch(c *observed, stream uintptr) {
	var touches []backends.Touch
	for i := range c.word(3) {
		touches = append(touches, copiedBetween(wordAt(c.word(0)+8*i), wordAt(c.word(1)+8*i), int(wordAt(c.word(2)+8*i)))...)
	}
	o.enqueues(c, backends.Stream(c.word(stream)), touches...)
}

// box says where CUDA_MEMCPY2D and CUDA_MEMCPY3D have what of a source and a target, in bytes.
type box struct {
	source, target, width uintptr
	deep                  bool
}

var (
	flatBox = box{source: 0, target: 56, width: 112}
	deepBox = box{source: 0, target: 88, width: 176, deep: true}
)

// side is where one is; nothing of an array.
func (b box) side(copy, from uintptr) backends.Touch {
	if copy < leastAddress {
		return backends.Touch{}
	}
	width, height, depth, rows := wordAt(copy+b.width), wordAt(copy+b.width+8), uintptr(1), uintptr(0)
	x, y, z, kind, host, device, pitch := wordAt(copy+from), wordAt(copy+from+8), uintptr(0), from+16, from+24, from+32,
		from+48
	if b.deep {
		z, kind, host, device, pitch = wordAt(copy+from+16), from+32, from+40, from+48, from+72
		depth, rows = wordAt(copy+b.width+16), wordAt(copy+from+80)
	}
	if width == 0 || height == 0 || depth == 0 {
		return backends.Touch{}
	}
	base := wordAt(copy + device)
	switch halfAt(copy + kind) {
	case memoryTypeHost:
		base = wordAt(copy + host)
	case memoryTypeArray:
		return backends.Touch{}
	}
	row := wordAt(copy + pitch)
	first := base + (z*rows+y)*row + x
	whole := ((depth-1)*rows+height-1)*row + width
	t := backends.Touch{Address: backends.Address(first), Size: int(whole)}
	switch {
	case depth == 1 || rows == height: // rows in whole
		t.Pitch, t.Width = int(row), int(width)
	case row == width: // slices in whole
		t.Pitch, t.Width = int(row*rows), int(row*height)
	default:
		t.Pitch = 1
	}
	if height*depth == 1 || t.Pitch == t.Width {
		t.Pitch, t.Width = 0, 0
	}
	return t
}

const memoryTypeArray = 3 // of CUmemorytype

func (o *observer) copiesBox(c *observed, b box, stream int) {
	var touches []backends.Touch
	add := func(from uintptr, writes backends.Writes) {
		if t := b.side(c.word(0), from); t.Size > 0 {
			t.Writes = writes
			touches = append(touches, t)
		}
	}
	add(b.target, backends.DoesWrite)
	add(b.source, backends.OnlyReads)
	o.enqueues(c, c.streamAt(stream), touches...)
}

// copiedBox is copiedToHost of a box.
func (o *observer) copiedBox(c *observed) {
	b := flatBox
	if *(*byte)(unsafe.Add(unsafe.Pointer(c.function), len("cuMemcpy"))) == '3' {
		b = deepBox
	}
	o.copiedTo(c, uintptr(b.side(c.word(0), b.target).Address), uintptr(b.side(c.word(0), b.source).Address))
}

// fills reports memory that is set.
func (o *observer) fills(c *observed, width uintptr, rows bool, stream int) {
	t := backends.Touch{Address: backends.Address(c.word(0)), Size: int(c.word(2) * width), Writes: backends.DoesWrite}
	if rows { // word 2 is the value, and 1 how far rows are apart
		columns, height, pitch := int(c.word(3)*width), int(c.word(4)), int(c.word(1))
		t.Size = 0
		if columns > 0 && height > 0 {
			t.Size = (height-1)*pitch + columns
		}
		if height > 1 && pitch != columns {
			t.Pitch, t.Width = pitch, columns
		}
	}
	o.enqueues(c, c.streamAt(stream), t)
}

// launchesGraph reports a graph, whose work is unknown.
func (o *observer) launchesGraph(c *observed) {
	handle := backends.Stream(c.word(1))
	o.mutex.Lock()
	more := o.graphs
	o.mutex.Unlock()
	if more {
		o.afterAll(c, handle)
	}
	o.enqueues(c, handle)
	if more {
		o.signalled(c, handle)
	}
}
