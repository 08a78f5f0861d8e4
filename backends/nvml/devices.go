package nvml

import (
	"unsafe"

	"hamr/backends"
)

// Device is a device, or a MIG instance, until the last Shutdown; then its calls fail with
// Uninitialized.
type Device struct {
	library *Library
	handle  uintptr
	era     uint64
}

var (
	deviceCount = function{"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}
	byIndex     = function{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}
	byUUID      = function{"nvmlDeviceGetHandleByUUID"}
	byBusID     = function{"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"}

	isInstance      = function{"nvmlDeviceIsMigDeviceHandle"}
	instanceMode    = function{"nvmlDeviceGetMigMode"}
	mostInstances   = function{"nvmlDeviceGetMaxMigDeviceCount"}
	instanceByIndex = function{"nvmlDeviceGetMigDeviceHandleByIndex"}
	instanceOf      = function{"nvmlDeviceGetDeviceHandleFromMigDeviceHandle"}
	gpuInstanceID   = function{"nvmlDeviceGetGpuInstanceId"}
	instanceID      = function{"nvmlDeviceGetComputeInstanceId"}
)

// DeviceCount returns how many devices there are, whatever CUDA_VISIBLE_DEVICES says; MIG instances
// are not counted.
func (l *Library) DeviceCount() (int, error) {
	count := new(uint32)
	err := l.call(deviceCount, uintptr(unsafe.Pointer(count)))
	return int(*count), err
}

// DeviceByIndex returns a device by its number in nvidia-smi, which is not its number in CUDA: see DeviceByIdentity.
func (l *Library) DeviceByIndex(index int) (Device, error) {
	if index < 0 || index > 1<<31-1 {
		return Device{}, l.failure(byIndex[0], InvalidArgument)
	}
	era, handle := l.present(), new(uintptr)
	err := l.call(byIndex, uintptr(index), uintptr(unsafe.Pointer(handle)))
	return Device{l, *handle, era}, err
}

// DeviceByUUID returns a device or MIG instance by the text that nvidia-smi -L shows, as "GPU-…" or
// "MIG-…".
func (l *Library) DeviceByUUID(uuid string) (Device, error) { return l.byText(byUUID, uuid) }

// DeviceByBusID returns a device by its PCI address, as "0000:3b:00.0".
func (l *Library) DeviceByBusID(id string) (Device, error) { return l.byText(byBusID, id) }

// DeviceByIdentity returns the device or MIG instance that a backend has with a UUID: CUDA's numbers
// follow CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, NVML's do not.
func (l *Library) DeviceByIdentity(id backends.UUID) (Device, error) {
	d, err := l.DeviceByUUID("GPU-" + id.String())
	// Libraries differ in what they call a UUID that no whole device has.
	if status := StatusOf(err); status != NotFound && status != InvalidArgument {
		return d, err
	}
	if d, instance := l.DeviceByUUID("MIG-" + id.String()); instance == nil {
		return d, nil
	}
	return d, err
}

func (l *Library) byText(f function, text string) (Device, error) {
	bytes := append([]byte(text), 0)
	era, handle := l.present(), new(uintptr)
	err := l.call(f, uintptr(unsafe.Pointer(unsafe.SliceData(bytes))), uintptr(unsafe.Pointer(handle)))
	return Device{l, *handle, era}, err
}

// present is the era of the next handle. If another thread ends it and begins a new one meanwhile, the handle counts
// as an old one.
func (l *Library) present() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.era
}

// Handle is the library's own, an nvmlDevice_t.
func (d Device) Handle() uintptr { return d.handle }

// call calls a function whose first argument is d's handle, which the arguments begin with.
//
//go:uintptrescapes
func (d Device) call(f function, arguments ...uintptr) error {
	l := d.library
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.references == 0 || d.era != l.era {
		return l.failure(f[0], Uninitialized)
	}
	return l.invoke(f, arguments...)
}

// number is what a function writes to its second argument, an unsigned int.
func (d Device) number(f function) (int, error) {
	out := new(uint32)
	err := d.call(f, d.handle, uintptr(unsafe.Pointer(out)))
	return int(*out), err
}

// numberOf is number with an argument in between.
func (d Device) numberOf(f function, argument int) (int, error) {
	out := new(uint32)
	err := d.call(f, d.handle, uintptr(argument), uintptr(unsafe.Pointer(out)))
	return int(*out), err
}

// pair is what a function writes to its second and third argument.
func (d Device) pair(f function) (first, second int, err error) {
	out := new([2]uint32)
	err = d.call(f, d.handle, uintptr(unsafe.Pointer(&out[0])), uintptr(unsafe.Pointer(&out[1])))
	return int(out[0]), int(out[1]), err
}

func (d Device) text(f function) (string, error) {
	return d.library.text(func(at *byte, size uintptr) error {
		return d.call(f, d.handle, uintptr(unsafe.Pointer(at)), size)
	})
}

// IsInstance reports whether it is a MIG instance, a part of a device. A library that knows of none has
// none.
func (d Device) IsInstance() (bool, error) {
	is, err := d.number(isInstance)
	if StatusOf(err) == FunctionNotFound {
		return false, nil
	}
	return is != 0, err
}

// InstanceMode reports whether the device is divided into MIG instances, and will be after a reset.
// The status is NotSupported where it cannot be.
func (d Device) InstanceMode() (current, pending bool, err error) {
	now, later, err := d.pair(instanceMode)
	return now != 0, later != 0, err
}

// Instances returns the device's MIG instances; none where it is not divided, or cannot be.
func (d Device) Instances() (list []Device, err error) {
	most, err := d.number(mostInstances)
	if status := StatusOf(err); status == NotSupported || status == FunctionNotFound {
		return nil, nil
	}
	for i := 0; i < most && err == nil; i++ {
		handle := new(uintptr)
		err = d.call(instanceByIndex, d.handle, uintptr(i), uintptr(unsafe.Pointer(handle)))
		switch StatusOf(err) {
		case Success:
			list = append(list, Device{d.library, *handle, d.era})
		case NotFound, NotSupported, InvalidArgument: // there is no instance of that number
			err = nil
		}
	}
	return list, err
}

// Whole returns the device that a MIG instance is a part of.
func (d Device) Whole() (Device, error) {
	handle := new(uintptr)
	err := d.call(instanceOf, d.handle, uintptr(unsafe.Pointer(handle)))
	return Device{d.library, *handle, d.era}, err
}

// InstanceIDs returns a MIG instance's GPU instance and compute instance.
func (d Device) InstanceIDs() (gpu, compute int, err error) {
	if gpu, err = d.number(gpuInstanceID); err != nil {
		return 0, 0, err
	}
	compute, err = d.number(instanceID)
	return gpu, compute, err
}
