package cuda

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// CUPTI is NVIDIA's library that reports calls of the driver. It comes with the toolkit, and with PyTorch and JAX
// from PyPI, not with the driver. The numbers and structures are those of its headers cupti_callbacks.h,
// cupti_driver_cbid.h and generated_cuda_meta.h (12.9), which only grow.
type cuptiFunctions struct {
	Subscribe      uintptr `dl:"cuptiSubscribe"`
	Unsubscribe    uintptr `dl:"cuptiUnsubscribe"`
	EnableCallback uintptr `dl:"cuptiEnableCallback"`
}

const (
	domainDriver      = 1
	domainSynchronize = 4

	streamSynchronized  = 1
	contextSynchronized = 2

	alreadySubscribed = 39 // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
)

// callOf is the CUpti_CallbackData of a call of the driver.
type callOf struct {
	site       uint32 // 0 before it, 1 after
	function   *byte
	parameters unsafe.Pointer
	result     *int32 // after it
	symbol     *byte  // of a launch: the kernel
	context    uintptr
	contextID  uint32
	shared     *uint64 // kept from before the call until after it
	number     uint32
}

// synchronized is the CUpti_SynchronizeData.
type synchronized struct{ context, stream uintptr }

// cuptiNames are what is looked for, where it is not loaded yet.
var cuptiNames = []string{"libcupti.so.13", "libcupti.so.12", "libcupti.so"}

const (
	// CUPTISetting names a file in place of these.
	CUPTISetting = "HAMR_CUPTI_LIBRARY"
	// CUPTIFilesSetting are further files in which CUPTI may be, as those of Python's packages, with a ":" between them.
	CUPTIFilesSetting = "HAMR_CUPTI_FILES"
)

// observing is the one subscription of the process.
var observing struct {
	observer atomic.Pointer[observer] // a callback waits for nobody

	sync.Mutex        // of what follows
	named      string // the file that the setting named
	functions  cuptiFunctions
	library    dl.Library
	callback   uintptr
	subscriber uintptr
}

// openCUPTI finds the library, once.
func (b *Backend) openCUPTI() error {
	o, named := &observing, b.lookup(CUPTISetting)
	if o.library != nil && o.named == named {
		return nil
	}
	names := append(dl.Loaded("libcupti.so"), cuptiNames...)
	if more := b.lookup(CUPTIFilesSetting); more != "" {
		names = append(names, strings.Split(more, ":")...)
	}
	library, err := dl.Open(names, named)
	if err == nil {
		err = dl.Bind(library, &o.functions)
	}
	if err != nil {
		return &backends.UnavailableError{Backend: "CUPTI", Reason: err.Error()}
	}
	o.library, o.named = library, named
	if o.callback == 0 {
		o.callback = dl.Callback(tell)
	}
	return nil
}

// tell is called by CUPTI, on the thread that calls the driver.
func tell(_ uintptr, domain, call uint32, data uintptr) {
	o := observing.observer.Load()
	if o == nil {
		return
	}
	at := *(*unsafe.Pointer)(unsafe.Pointer(&data)) // memory of CUPTI's
	switch domain {
	case domainDriver:
		o.called(call, (*callOf)(at))
	case domainSynchronize:
		s := (*synchronized)(at)
		o.waited(call, s)
	}
}

// Observe subscribes at CUPTI, which has one subscriber in a process: not where a profiler is.
func (b *Backend) Observe(to backends.Witness) (stop func(), err error) {
	if err := b.Probe(); err != nil {
		return nil, err
	}
	if b.Name() != backends.CUDA.Backend() {
		return nil, errors.ErrUnsupported
	}
	o := &observing
	o.Lock()
	defer o.Unlock()
	if o.observer.Load() != nil {
		return nil, errors.New("somebody observes the driver already")
	}
	if err := b.openCUPTI(); err != nil {
		return nil, err
	}
	observer, err := newObserver(b, to)
	if err != nil {
		return nil, err
	}
	if code := int32(dl.Call(o.functions.Subscribe, uintptr(unsafe.Pointer(&o.subscriber)), o.callback, 0)); code != 0 {
		if code == alreadySubscribed {
			return nil, errors.New("CUPTI has a subscriber already, as a profiler is, and takes no other")
		}
		return nil, fmt.Errorf("cuptiSubscribe: error %d", code)
	}
	subscriber := o.subscriber
	o.observer.Store(observer)
	enable := func(domain, call uint32) {
		// Where an older CUPTI does not know a call, nobody makes it.
		dl.Call(o.functions.EnableCallback, 1, subscriber, uintptr(domain), uintptr(call))
	}
	for call := range observedCalls {
		enable(domainDriver, call)
	}
	enable(domainSynchronize, streamSynchronized)
	enable(domainSynchronize, contextSynchronized)
	return func() {
		o.observer.Store(nil)
		dl.Call(o.functions.Unsubscribe, subscriber)
	}, nil
}

// ObservedBy returns CUPTI's file, or "".
func ObservedBy() string {
	observing.Lock()
	defer observing.Unlock()
	if observing.library == nil {
		return ""
	}
	return observing.library.Path()
}
