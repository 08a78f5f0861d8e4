package sycl

// library is the C entry points in use, of dpctl's header files since its version 0.18. What a function returns is
// deleted by the function of its kind. DPCTLQueue_Wait is not used, since it lets C++ exceptions out, which
// DPCTLEvent_WaitAndThrow catches.
type library struct {
	DeleteString uintptr `dl:"DPCTLCString_Delete"`

	GetDevices    uintptr `dl:"DPCTLDeviceMgr_GetDevices"`
	VectorSize    uintptr `dl:"DPCTLDeviceVector_Size"`
	VectorGetAt   uintptr `dl:"DPCTLDeviceVector_GetAt"`
	DeleteVector  uintptr `dl:"DPCTLDeviceVector_Delete"`
	CachedContext uintptr `dl:"DPCTLDeviceMgr_GetCachedContext"`

	DevicesAreEqual  uintptr `dl:"DPCTLDevice_AreEq"`
	DeleteDevice     uintptr `dl:"DPCTLDevice_Delete"`
	HasAspect        uintptr `dl:"DPCTLDevice_HasAspect"`
	DeviceType       uintptr `dl:"DPCTLDevice_GetDeviceType"`
	DeviceBackend    uintptr `dl:"DPCTLDevice_GetBackend"`
	DeviceName       uintptr `dl:"DPCTLDevice_GetName"`
	DeviceDriver     uintptr `dl:"DPCTLDevice_GetDriverVersion"`
	DeviceMemory     uintptr `dl:"DPCTLDevice_GetGlobalMemSize"`
	DeviceLargest    uintptr `dl:"DPCTLDevice_GetMaxMemAllocSize"`
	DeviceUnits      uintptr `dl:"DPCTLDevice_GetMaxComputeUnits"`
	DevicePlatform   uintptr `dl:"DPCTLDevice_GetPlatform"`
	PlatformName     uintptr `dl:"DPCTLPlatform_GetName"`
	PlatformVersion  uintptr `dl:"DPCTLPlatform_GetVersion"`
	DeletePlatform   uintptr `dl:"DPCTLPlatform_Delete"`
	CreateContext    uintptr `dl:"DPCTLContext_Create"`
	ContextsAreEqual uintptr `dl:"DPCTLContext_AreEq"`
	DeleteContext    uintptr `dl:"DPCTLContext_Delete"`

	CreateQueue     uintptr `dl:"DPCTLQueue_Create"`
	DeleteQueue     uintptr `dl:"DPCTLQueue_Delete"`
	QueueContext    uintptr `dl:"DPCTLQueue_GetContext"`
	QueueDevice     uintptr `dl:"DPCTLQueue_GetDevice"`
	QueueIsInOrder  uintptr `dl:"DPCTLQueue_IsInOrder"`
	Copy            uintptr `dl:"DPCTLQueue_Memcpy"`
	Fill8           uintptr `dl:"DPCTLQueue_Fill8"`
	Fill16          uintptr `dl:"DPCTLQueue_Fill16"`
	Fill32          uintptr `dl:"DPCTLQueue_Fill32"`
	Fill64          uintptr `dl:"DPCTLQueue_Fill64"`
	Fill128         uintptr `dl:"DPCTLQueue_Fill128"`
	Barrier         uintptr `dl:"DPCTLQueue_SubmitBarrier"`
	BarrierBehind   uintptr `dl:"DPCTLQueue_SubmitBarrierForEvents"`
	CopyEvent       uintptr `dl:"DPCTLEvent_Copy"`
	DeleteEvent     uintptr `dl:"DPCTLEvent_Delete"`
	EventStatus     uintptr `dl:"DPCTLEvent_GetCommandExecutionStatus"`
	WaitForEvent    uintptr `dl:"DPCTLEvent_WaitAndThrow"`
	EventEnd        uintptr `dl:"DPCTLEvent_GetProfilingInfoEnd"`
	AllocateDevice  uintptr `dl:"DPCTLaligned_alloc_device"`
	AllocateShared  uintptr `dl:"DPCTLaligned_alloc_shared"`
	AllocateHost    uintptr `dl:"DPCTLaligned_alloc_host"`
	FreeWithContext uintptr `dl:"DPCTLfree_with_context"`
}
