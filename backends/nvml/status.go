package nvml

import "strconv"

// Status is what each call of NVML returns: nvmlReturn_t.
type Status int32

// The codes of nvml.h.
const (
	Success                 Status = 0
	Uninitialized           Status = 1
	InvalidArgument         Status = 2
	NotSupported            Status = 3
	NoPermission            Status = 4
	NotFound                Status = 6
	InsufficientSize        Status = 7
	DriverNotLoaded         Status = 9
	LibraryNotFound         Status = 12
	FunctionNotFound        Status = 13
	DriverMismatch          Status = 18
	ArgumentVersionMismatch Status = 25
	Deprecated              Status = 26
	Unknown                 Status = 999
)

// statuses are the names and what they mean, for where there is no library to ask.
var statuses = map[Status][2]string{
	Success:          {"NVML_SUCCESS", "success"},
	Uninitialized:    {"NVML_ERROR_UNINITIALIZED", "nvmlInit was not called, or nvmlShutdown was"},
	InvalidArgument:  {"NVML_ERROR_INVALID_ARGUMENT", "an argument is invalid"},
	NotSupported:     {"NVML_ERROR_NOT_SUPPORTED", "the device does not support it"},
	NoPermission:     {"NVML_ERROR_NO_PERMISSION", "the user may not do it"},
	5:                {"NVML_ERROR_ALREADY_INITIALIZED", "it is initialised already"},
	NotFound:         {"NVML_ERROR_NOT_FOUND", "there is no such object"},
	InsufficientSize: {"NVML_ERROR_INSUFFICIENT_SIZE", "an argument is too small"},
	8:                {"NVML_ERROR_INSUFFICIENT_POWER", "a device's external power cables are not attached"},
	DriverNotLoaded:  {"NVML_ERROR_DRIVER_NOT_LOADED", "NVIDIA's kernel driver is not loaded"},
	10:               {"NVML_ERROR_TIMEOUT", "the time allowed has passed"},
	11:               {"NVML_ERROR_IRQ_ISSUE", "the kernel has trouble with a device's interrupts"},
	LibraryNotFound:  {"NVML_ERROR_LIBRARY_NOT_FOUND", "NVML's library is not there"},
	FunctionNotFound: {"NVML_ERROR_FUNCTION_NOT_FOUND", "this version of NVML's library has no such function"},
	14:               {"NVML_ERROR_CORRUPTED_INFOROM", "a device's infoROM is corrupted"},
	15:               {"NVML_ERROR_GPU_IS_LOST", "the device cannot be reached any more"},
	16:               {"NVML_ERROR_RESET_REQUIRED", "the device must be reset before it can be used"},
	17:               {"NVML_ERROR_OPERATING_SYSTEM", "the operating system has refused"},
	DriverMismatch: {"NVML_ERROR_LIB_RM_VERSION_MISMATCH",
		"the library and the kernel driver are of two versions"},
	19: {"NVML_ERROR_IN_USE", "the device is in use"},
	20: {"NVML_ERROR_MEMORY", "out of memory"},
	21: {"NVML_ERROR_NO_DATA", "there are no data"},
	22: {"NVML_ERROR_VGPU_ECC_NOT_SUPPORTED", "a virtual device cannot have ECC enabled"},
	23: {"NVML_ERROR_INSUFFICIENT_RESOURCES", "out of resources other than memory"},
	24: {"NVML_ERROR_FREQ_NOT_SUPPORTED", "the device does not support the frequency"},
	ArgumentVersionMismatch: {"NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
		"the library does not know this version of an argument"},
	Deprecated: {"NVML_ERROR_DEPRECATED", "the function is deprecated"},
	27:         {"NVML_ERROR_NOT_READY", "the system is not ready for it"},
	28:         {"NVML_ERROR_GPU_NOT_FOUND", "no device was found"},
	29:         {"NVML_ERROR_INVALID_STATE", "the device is in no state for it"},
	30:         {"NVML_ERROR_RESET_TYPE_NOT_SUPPORTED", "the device cannot be reset so"},
	Unknown:    {"NVML_ERROR_UNKNOWN", "an internal error of the driver"},
}

// String is the constant's name in nvml.h, as "NVML_ERROR_NOT_SUPPORTED".
func (s Status) String() string {
	if known, ok := statuses[s]; ok {
		return known[0]
	}
	return "NVML_ERROR_" + strconv.Itoa(int(s))
}

// Text says what the status means. The library's own words are in the errors of its calls.
func (s Status) Text() string { return statuses[s][1] }
