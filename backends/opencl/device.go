package opencl

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/queues"
)

// Numbers of CL/cl.h and CL/cl_ext.h.
const (
	deviceTypeAll         = 0xFFFFFFFF
	deviceTypeCPU         = 1 << 1
	deviceTypeGPU         = 1 << 2
	deviceTypeAccelerator = 1 << 3

	platformName = 0x0902

	deviceType          = 0x1000
	deviceUnits         = 0x1002
	deviceLargest       = 0x1010
	deviceMemory        = 0x101F
	deviceAvailable     = 0x1027
	deviceName          = 0x102B
	driverVersion       = 0x102D
	deviceVersion       = 0x102F
	deviceExtensions    = 0x1030
	deviceSVM           = 0x1053
	deviceUUID          = 0x106A
	deviceUSMOfDevice   = 0x4191
	deviceUSMOfShared   = 0x4192
	contextPlatform     = 0x1084
	svmCoarse           = 1 << 0
	svmFine             = 1 << 1
	usmAccess           = 1 << 0
	extensionUSM        = "cl_intel_unified_shared_memory"
	extensionUUID       = "cl_khr_device_uuid"
	queueOutOfOrder     = 1 << 0
	queueProfiling      = 1 << 1
	firstVersionWithSVM = "OpenCL 2."
)

// memoryModel is the memory that a device has for both allocators.
type memoryModel int

const (
	noMemory     memoryModel = iota
	coarseMemory             // shared virtual memory, which the host maps
	fineMemory               // the same, which the host may use at any time
	usmMemory                // unified shared memory: that of the device, and shared
)

var modelNames = [...]string{noMemory: "none", coarseMemory: "coarse", fineMemory: "fine", usmMemory: "usm"}

// parseMemory reads MemorySetting.
func parseMemory(text string) (memoryModel, error) {
	if text == "" {
		return usmMemory, nil
	}
	for m := coarseMemory; m <= usmMemory; m++ {
		if modelNames[m] == text {
			return m, nil
		}
	}
	return 0, fmt.Errorf("%s is %q: accepted are coarse, fine, usm", MemorySetting, text)
}

// device is a device of some platform, with the context that all its memory is of.
type device struct {
	number   int
	platform uintptr
	handle   uintptr
	kind     uint64
	largest  uint64 // bytes of the largest allocation
	memory   memoryModel
	usm      usm

	start   sync.Once
	failed  error
	context uintptr
	queue   *queues.Queue // the default one
	aside   *queues.Queue // for what has no stream: maps, copies through the host
}

// newDevice asks for what never changes; nil for a device that cannot be used now.
func (b *Backend) newDevice(platform, handle uintptr, most memoryModel) (*device, error) {
	d := &device{platform: platform, handle: handle}
	available, err := b.number(d, deviceAvailable)
	if err != nil || available == 0 {
		return nil, err
	}
	if d.kind, err = b.number(d, deviceType); err != nil {
		return nil, err
	}
	if d.largest, err = b.number(d, deviceLargest); err != nil {
		return nil, err
	}
	version, err := b.text(d, deviceVersion)
	if err != nil {
		return nil, err
	}
	extensions, err := b.text(d, deviceExtensions)
	if err != nil {
		return nil, err
	}
	if grains, err := b.number(d, deviceSVM); err == nil && version >= firstVersionWithSVM {
		switch {
		case grains&svmFine != 0:
			d.memory = fineMemory
		case grains&svmCoarse != 0:
			d.memory = coarseMemory
		}
	}
	if d.memory = min(d.memory, most); most == usmMemory && hasExtension(extensions, extensionUSM) && b.bindUSM(d) {
		d.memory = usmMemory
	}
	return d, nil
}

func hasExtension(list, wanted string) bool {
	for each := range strings.FieldsSeq(list) {
		if each == wanted {
			return true
		}
	}
	return false
}

// bindUSM reports whether the device has both kinds of memory of the extension, and finds its functions.
func (b *Backend) bindUSM(d *device) bool {
	for _, kind := range []uintptr{deviceUSMOfDevice, deviceUSMOfShared} {
		if able, err := b.number(d, kind); err != nil || able&usmAccess == 0 {
			return false
		}
	}
	return dl.Bind(extension{b, d.platform}, &d.usm) == nil
}

// extension finds functions that only a platform's extensions have.
type extension struct {
	b        *Backend
	platform uintptr
}

// Path implements dl.Library.
func (e extension) Path() string { return extensionUSM }

// Symbol implements dl.Library.
func (e extension) Symbol(symbol string) (uintptr, error) {
	text := append([]byte(symbol), 0)
	at := dl.Call(e.b.library.GetExtensionAddress, e.platform, uintptr(unsafe.Pointer(unsafe.SliceData(text))))
	if at == 0 {
		return 0, fmt.Errorf("the platform has no %s", symbol)
	}
	return at, nil
}

// rank is the place among devices of other kinds.
func (d *device) rank() int {
	switch {
	case d.kind&deviceTypeGPU != 0:
		return 0
	case d.kind&deviceTypeAccelerator != 0:
		return 1
	}
	return 2
}

func (d *device) kindName() string {
	switch {
	case d.kind&deviceTypeGPU != 0:
		return "gpu"
	case d.kind&deviceTypeAccelerator != 0:
		return "accelerator"
	case d.kind&deviceTypeCPU != 0:
		return "cpu"
	}
	return "other"
}

// OnProcessor reports whether a device is a CPU and nothing else.
func (b *Backend) OnProcessor(number int) bool {
	return number >= 0 && number < len(b.devices) && b.devices[number].kindName() == "cpu"
}

// info is what f(object, what, size, value, &size) tells.
func info(f, object, what uintptr) ([]byte, int32) {
	size := new(uintptr)
	if code := int32(dl.Call(f, object, what, 0, 0, uintptr(unsafe.Pointer(size)))); code != success || *size == 0 {
		return nil, code
	}
	value := make([]byte, *size)
	code := int32(dl.Call(f, object, what, *size, uintptr(unsafe.Pointer(unsafe.SliceData(value))), 0))
	return value, code
}

// number is a fact of a device that is an integer of up to eight bytes.
func (b *Backend) number(d *device, what uintptr) (uint64, error) {
	value, code := info(b.library.GetDeviceInfo, d.handle, what)
	if code != success {
		return 0, failure("clGetDeviceInfo", code, "")
	}
	return integer(value), nil
}

func integer(value []byte) (n uint64) {
	for i := min(len(value), 8) - 1; i >= 0; i-- {
		n = n<<8 | uint64(value[i])
	}
	return n
}

func (b *Backend) text(d *device, what uintptr) (string, error) {
	value, code := info(b.library.GetDeviceInfo, d.handle, what)
	if code != success {
		return "", failure("clGetDeviceInfo", code, "")
	}
	return textOf(value), nil
}

func (b *Backend) platformText(platform, what uintptr) (string, error) {
	value, code := info(b.library.GetPlatformInfo, platform, what)
	if code != success {
		return "", failure("clGetPlatformInfo", code, "")
	}
	return textOf(value), nil
}

func textOf(value []byte) string {
	before, _, _ := bytes.Cut(value, []byte{0})
	return strings.TrimSpace(string(before))
}

// device returns one, with its context and queues, which are made at the first call.
func (b *Backend) device(call string, number int) (*device, error) {
	if number < 0 || number >= len(b.devices) {
		return nil, failure(call, invalidDevice, fmt.Sprintf("there is no device %d", number))
	}
	d := b.devices[number]
	d.start.Do(func() { d.failed = b.open(d) })
	return d, d.failed
}

func (b *Backend) open(d *device) (err error) {
	properties := &[3]uintptr{contextPlatform, d.platform, 0}
	devices := &[1]uintptr{d.handle}
	d.context, err = b.made(b.library.CreateContext, uintptr(unsafe.Pointer(properties)), 1,
		uintptr(unsafe.Pointer(devices)), 0, 0)
	if err != nil {
		return err
	}
	if d.queue, err = b.newQueue(d); err != nil {
		return err
	}
	d.aside, err = b.newQueue(d)
	return err
}

// Supports implements backends.Supporter: a device has both allocators or none.
func (b *Backend) Supports(a backends.Allocator, number int) error {
	if number < 0 || number >= len(b.devices) {
		return failure("Supports", invalidDevice, fmt.Sprintf("there is no device %d", number))
	}
	if d := b.devices[number]; d.memory == noMemory {
		text, _ := b.text(d, deviceName)
		return &backends.UnavailableError{Backend: name,
			Reason: fmt.Sprintf("device %d (%s) has neither shared virtual memory nor %s, for allocator %s",
				number, text, extensionUSM, a)}
	}
	return nil
}
