package opencl

// library is the C entry points in use, of OpenCL 1.2 and of 2.0's shared virtual memory. Those of 2.0 may be called
// only for devices that have it, since a loader hands out functions that older platforms lack.
type library struct {
	GetPlatformIDs      uintptr `dl:"clGetPlatformIDs"`
	GetPlatformInfo     uintptr `dl:"clGetPlatformInfo"`
	GetExtensionAddress uintptr `dl:"clGetExtensionFunctionAddressForPlatform"`
	GetDeviceIDs        uintptr `dl:"clGetDeviceIDs"`
	GetDeviceInfo       uintptr `dl:"clGetDeviceInfo"`
	CreateContext       uintptr `dl:"clCreateContext"`

	// It is deprecated since 2.0, but in every library. Its successor is not in every platform.
	CreateCommandQueue  uintptr `dl:"clCreateCommandQueue"`
	ReleaseCommandQueue uintptr `dl:"clReleaseCommandQueue"`
	GetCommandQueueInfo uintptr `dl:"clGetCommandQueueInfo"`
	Flush               uintptr `dl:"clFlush"`
	Finish              uintptr `dl:"clFinish"`
	EnqueueMarker       uintptr `dl:"clEnqueueMarkerWithWaitList"`
	EnqueueBarrier      uintptr `dl:"clEnqueueBarrierWithWaitList"`

	CreateUserEvent       uintptr `dl:"clCreateUserEvent"`
	SetUserEventStatus    uintptr `dl:"clSetUserEventStatus"`
	RetainEvent           uintptr `dl:"clRetainEvent"`
	ReleaseEvent          uintptr `dl:"clReleaseEvent"`
	WaitForEvents         uintptr `dl:"clWaitForEvents"`
	GetEventInfo          uintptr `dl:"clGetEventInfo"`
	GetEventProfilingInfo uintptr `dl:"clGetEventProfilingInfo"`

	SVMAlloc        uintptr `dl:"clSVMAlloc"`
	SVMFree         uintptr `dl:"clSVMFree"`
	EnqueueSVMCopy  uintptr `dl:"clEnqueueSVMMemcpy"`
	EnqueueSVMFill  uintptr `dl:"clEnqueueSVMMemFill"`
	EnqueueSVMMap   uintptr `dl:"clEnqueueSVMMap"`
	EnqueueSVMUnmap uintptr `dl:"clEnqueueSVMUnmap"`
}

// usm is the entry points of cl_intel_unified_shared_memory, which each platform has of its own.
type usm struct {
	DeviceAlloc uintptr `dl:"clDeviceMemAllocINTEL"`
	SharedAlloc uintptr `dl:"clSharedMemAllocINTEL"`
	Free        uintptr `dl:"clMemFreeINTEL"`
	EnqueueCopy uintptr `dl:"clEnqueueMemcpyINTEL"`
	EnqueueFill uintptr `dl:"clEnqueueMemFillINTEL"`
}
