package nvml

import "unsafe"

var (
	nameOf           = function{"nvmlDeviceGetName"}
	uuidOf           = function{"nvmlDeviceGetUUID"}
	serialOf         = function{"nvmlDeviceGetSerial"}
	indexOf          = function{"nvmlDeviceGetIndex"}
	pciInfo          = function{"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}
	utilizationRates = function{"nvmlDeviceGetUtilizationRates"}
	memoryInfoNow    = function{"nvmlDeviceGetMemoryInfo_v2"}
	memoryInfo       = function{"nvmlDeviceGetMemoryInfo"}
	temperature      = function{"nvmlDeviceGetTemperature"}
	temperatureNow   = function{"nvmlDeviceGetTemperatureV"}
	powerUsage       = function{"nvmlDeviceGetPowerUsage"}
	powerLimit       = function{"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"}
	clockInfo        = function{"nvmlDeviceGetClockInfo"}
	maxClockInfo     = function{"nvmlDeviceGetMaxClockInfo"}
	persistenceMode  = function{"nvmlDeviceGetPersistenceMode"}
	eccMode          = function{"nvmlDeviceGetEccMode"}
)

// versionBits is where a struct's version stands above its size, in its first field.
const versionBits = 24

// Name returns what the vendor calls the device.
func (d Device) Name() (string, error) { return d.text(nameOf) }

// UUID returns the text that nvidia-smi shows, as "GPU-…" or, of a MIG instance, "MIG-…".
func (d Device) UUID() (string, error) { return d.text(uuidOf) }

// Serial returns the number on the board; NotSupported where there is none.
func (d Device) Serial() (string, error) { return d.text(serialOf) }

// Index returns the number that DeviceByIndex takes.
func (d Device) Index() (int, error) { return d.number(indexOf) }

// PCI is where a device is on the bus. BusID is the text, as "00000000:3B:00.0".
type PCI struct {
	BusID               string
	Domain, Bus, Device int
}

// PCI returns where the device is on the bus.
func (d Device) PCI() (PCI, error) {
	// nvmlPciInfo_t; the versions before the third have no id.
	info := new(struct {
		legacy                                 [16]byte
		domain, bus, device, vendor, subsystem uint32
		id                                     [32]byte
		_                                      [64]byte // for a library that writes more
	})
	err := d.call(pciInfo, d.handle, uintptr(unsafe.Pointer(info)))
	_, name := d.library.find(pciInfo)
	text := untilZero(info.legacy[:])
	if name == pciInfo[0] {
		text = untilZero(info.id[:])
	}
	return PCI{text, int(info.domain), int(info.bus), int(info.device)}, err
}

// Utilization is the per cent of the last sample period, between a sixth of a second and a second, in
// which a kernel ran (GPU), and in which device memory was read or written (Memory).
type Utilization struct{ GPU, Memory int }

// Utilization returns how busy the device is. A MIG instance has no such figure: NotSupported.
func (d Device) Utilization() (Utilization, error) {
	rates := new([2]uint32)
	err := d.call(utilizationRates, d.handle, uintptr(unsafe.Pointer(rates)))
	return Utilization{int(rates[0]), int(rates[1])}, err
}

// Memory is how full a device's memory is, in bytes. Used is what processes have, and Reserved what the
// driver and the firmware have; of an old library, which does not tell them apart, Used is both, and
// KnowsReserved is false.
type Memory struct {
	Free, Total, Used, Reserved uint64
	KnowsReserved               bool
}

// Memory returns how full the device's memory is; of a MIG instance, its part.
func (d Device) Memory() (Memory, error) {
	now := new(struct { // nvmlMemory_v2_t
		version                     uint32
		total, reserved, free, used uint64
	})
	now.version = uint32(unsafe.Sizeof(*now)) | 2<<versionBits
	err := d.call(memoryInfoNow, d.handle, uintptr(unsafe.Pointer(now)))
	if err == nil {
		return Memory{now.free, now.total, now.used, now.reserved, true}, nil
	}
	if !olderMayServe(err) {
		return Memory{}, err
	}
	old := new(struct{ total, free, used uint64 }) // nvmlMemory_t
	err = d.call(memoryInfo, d.handle, uintptr(unsafe.Pointer(old)))
	return Memory{Free: old.free, Total: old.total, Used: old.used}, err
}

// olderMayServe reports whether a library or a device that does not know one version of a function may
// know another one.
func olderMayServe(err error) bool {
	switch StatusOf(err) {
	case FunctionNotFound, ArgumentVersionMismatch, Deprecated, NotSupported:
		return true
	}
	return false
}

// Temperature returns that of the chip in degrees Celsius.
func (d Device) Temperature() (int, error) {
	const chip = 0 // NVML_TEMPERATURE_GPU
	degrees, err := d.numberOf(temperature, chip)
	if err == nil || !olderMayServe(err) {
		return degrees, err
	}
	now := new(struct { // nvmlTemperature_v1_t
		version         uint32
		sensor, degrees int32
	})
	now.version = uint32(unsafe.Sizeof(*now)) | 1<<versionBits
	if d.call(temperatureNow, d.handle, uintptr(unsafe.Pointer(now))) != nil {
		return 0, err
	}
	return int(now.degrees), nil
}

// Power returns what the device draws, in milliwatts.
func (d Device) Power() (int, error) { return d.number(powerUsage) }

// PowerLimit returns what the device is let draw, in milliwatts.
func (d Device) PowerLimit() (int, error) { return d.number(powerLimit) }

// Clock is one of a device's clocks.
type Clock int

// The clocks.
const (
	GraphicsClock Clock = 0
	SMClock       Clock = 1
	MemoryClock   Clock = 2
)

// Clock returns how fast a clock runs now, in MHz.
func (d Device) Clock(which Clock) (int, error) { return d.numberOf(clockInfo, int(which)) }

// MaxClock returns how fast a clock can run, in MHz.
func (d Device) MaxClock(which Clock) (int, error) { return d.numberOf(maxClockInfo, int(which)) }

// Persistence reports whether the driver stays loaded while nobody uses the device.
func (d Device) Persistence() (bool, error) {
	on, err := d.number(persistenceMode)
	return on != 0, err
}

// ECC reports whether the memory corrects errors, and will after a reset.
func (d Device) ECC() (current, pending bool, err error) {
	now, later, err := d.pair(eccMode)
	return now != 0, later != 0, err
}
