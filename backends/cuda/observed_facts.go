package cuda

import (
	"runtime"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// observersFunctions are what the observer asks the driver within a call of the driver.
type observersFunctions struct {
	StreamGetFlags       uintptr `dl:"cuStreamGetFlags,optional"`
	StreamGetCtx         uintptr `dl:"cuStreamGetCtx,optional"`
	StreamIsCapturing    uintptr `dl:"cuStreamIsCapturing,optional"`
	PointerGetAttributes uintptr `dl:"cuPointerGetAttributes"`
	FuncGetParamInfo     uintptr `dl:"cuFuncGetParamInfo,optional"`   // 12.4
	KernelGetParamInfo   uintptr `dl:"cuKernelGetParamInfo,optional"` // of a library's kernel, which can be launched
}

// asked returns what the driver knows of a stream. If it knows nothing, the stream counts as one that waits for the
// legacy default one, in the current context and in no capture.
func (o *observer) asked(handle backends.Stream, current uintptr) (blocking bool, context uintptr, capturing bool) {
	word := new([1]uint64)
	ask := func(f uintptr, otherwise uint64) uint64 {
		*word = [1]uint64{}
		if f == 0 || int32(dl.Call(f, uintptr(handle), uintptr(unsafe.Pointer(&word[0])))) != success {
			return otherwise
		}
		return word[0]
	}
	flags := ask(o.driver.StreamGetFlags, 0)
	context = uintptr(ask(o.driver.StreamGetCtx, uint64(current)))
	return flags&nonBlocking == 0, context, ask(o.driver.StreamIsCapturing, 0) != 0
}

// copied is the end of a copy that the caller waits for.
func (o *observer) copied(c *observed) {
	o.refused(c)
	if q, _ := c.enqueued(); *c.result == success && q != 0 {
		o.to.Over(q)
	}
}

// copiedToHost is the end of a copy that the caller has waited for if it went to ordinary host memory, or from one
// memory of the host to another.
func (o *observer) copiedToHost(c *observed) {
	o.copiedTo(c, c.word(0), c.word(1))
}

func (o *observer) copiedTo(c *observed, target, source uintptr) {
	if *c.result == success && target != 0 {
		to := o.facts(target)
		//mutate:replace a copy to ordinary memory is never over
		//mutate:with to == (memoryFacts{}) => false
		if to == (memoryFacts{}) || to.type_ == memoryTypeHost && source != 0 && o.facts(source).type_ != memoryTypeDevice {
			o.copied(c)
			return
		}
	}
	o.refused(c)
}

// filled is the end of a fill, or of a copy on a device. The driver waits for it unless all is devices' ordinary
// memory.
func (o *observer) filled(c *observed) { o.waitedUnlessPlain(c, c.word(0)) }

func (o *observer) copiedOnDevice(c *observed) { o.waitedUnlessPlain(c, c.word(0), c.word(1)) }

func (o *observer) waitedUnlessPlain(c *observed, addresses ...uintptr) {
	for _, address := range addresses {
		if *c.result == success && o.facts(address) != (memoryFacts{type_: memoryTypeDevice}) {
			o.copied(c)
			return
		}
	}
	o.refused(c)
}

// memoryFacts are what the driver says of an address; all are zero of ordinary memory of the host.
type memoryFacts struct {
	type_, managed, synchronous uint32
}

const memoryTypeDevice = 2 // of CUmemorytype

// facts asks the driver. Without an answer the memory does not count as ordinary.
func (o *observer) facts(address uintptr) memoryFacts {
	// CU_POINTER_ATTRIBUTE_MEMORY_TYPE, …_IS_MANAGED, …_SYNC_MEMOPS
	attributes, values := &[3]uint32{2, 8, 6}, new([3]uint32)
	into := &[3]uintptr{}
	for i := range into {
		into[i] = uintptr(unsafe.Pointer(&values[i]))
	}
	code := int32(dl.Call(o.driver.PointerGetAttributes, 3, uintptr(unsafe.Pointer(attributes)),
		uintptr(unsafe.Pointer(into)), address))
	runtime.KeepAlive(values)
	if code != success {
		return memoryFacts{type_: memoryTypeDevice}
	}
	return memoryFacts{values[0], values[1] & 1, values[2] & 1}
}
