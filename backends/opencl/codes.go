package opencl

import (
	"strconv"

	"hamr/backends"
)

// The codes that decide what happens next.
const (
	success              = 0
	deviceNotFound       = -1
	allocationFailure    = -4
	outOfResources       = -5
	outOfHostMemory      = -6
	profilingUnavailable = -7
	invalidDevice        = -33
	invalidContext       = -34
	invalidEvent         = -58
	invalidBufferSize    = -61
)

// codeNames are the names of CL/cl.h and, below -1000, of the loader's and vendors' extensions.
var codeNames = map[int32]string{
	0:     "CL_SUCCESS",
	-1:    "CL_DEVICE_NOT_FOUND",
	-2:    "CL_DEVICE_NOT_AVAILABLE",
	-3:    "CL_COMPILER_NOT_AVAILABLE",
	-4:    "CL_MEM_OBJECT_ALLOCATION_FAILURE",
	-5:    "CL_OUT_OF_RESOURCES",
	-6:    "CL_OUT_OF_HOST_MEMORY",
	-7:    "CL_PROFILING_INFO_NOT_AVAILABLE",
	-8:    "CL_MEM_COPY_OVERLAP",
	-9:    "CL_IMAGE_FORMAT_MISMATCH",
	-10:   "CL_IMAGE_FORMAT_NOT_SUPPORTED",
	-11:   "CL_BUILD_PROGRAM_FAILURE",
	-12:   "CL_MAP_FAILURE",
	-13:   "CL_MISALIGNED_SUB_BUFFER_OFFSET",
	-14:   "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
	-15:   "CL_COMPILE_PROGRAM_FAILURE",
	-16:   "CL_LINKER_NOT_AVAILABLE",
	-17:   "CL_LINK_PROGRAM_FAILURE",
	-18:   "CL_DEVICE_PARTITION_FAILED",
	-19:   "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
	-30:   "CL_INVALID_VALUE",
	-31:   "CL_INVALID_DEVICE_TYPE",
	-32:   "CL_INVALID_PLATFORM",
	-33:   "CL_INVALID_DEVICE",
	-34:   "CL_INVALID_CONTEXT",
	-35:   "CL_INVALID_QUEUE_PROPERTIES",
	-36:   "CL_INVALID_COMMAND_QUEUE",
	-37:   "CL_INVALID_HOST_PTR",
	-38:   "CL_INVALID_MEM_OBJECT",
	-53:   "CL_INVALID_WORK_DIMENSION",
	-57:   "CL_INVALID_EVENT_WAIT_LIST",
	-58:   "CL_INVALID_EVENT",
	-59:   "CL_INVALID_OPERATION",
	-61:   "CL_INVALID_BUFFER_SIZE",
	-64:   "CL_INVALID_PROPERTY",
	-1001: "CL_PLATFORM_NOT_FOUND_KHR",
}

func nameOf(code int32) string {
	if text, known := codeNames[code]; known {
		return text
	}
	return "an unknown code"
}

// failure makes an error of a code.
func failure(call string, code int32, message string) error {
	return &backends.DeviceError{API: name, Call: call, Name: nameOf(code), Code: int(code), Message: message}
}

// outOfMemory makes an error of the code of a call that allocates, if it says that memory ran
// out. Of other calls CL_OUT_OF_RESOURCES says anything: some drivers report a kernel's bad
// access so.
func outOfMemory(code int32, call string, r backends.Request) error {
	switch code {
	case allocationFailure, outOfResources, outOfHostMemory, invalidBufferSize:
		return &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size,
			Detail: call + ": " + nameOf(code) + " (" + strconv.Itoa(int(code)) + ")"}
	}
	return failure(call, code, "")
}
