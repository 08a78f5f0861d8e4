package cuda

// Introduction is the functions that tell whether a driver can be used at all. Drivers that lack functions of
// EntryPoints have them, too.
type Introduction struct {
	Init           uintptr `dl:"cuInit"`
	DriverVersion  uintptr `dl:"cuDriverGetVersion"`
	GetErrorName   uintptr `dl:"cuGetErrorName"`
	GetErrorString uintptr `dl:"cuGetErrorString"`
}

// EntryPoints is the C entry points in use. The version suffixes are those of the
// 64-bit interface, which the toolkit's header hides behind macros.
type EntryPoints struct {
	// Devices.
	DeviceGet              uintptr `dl:"cuDeviceGet"`
	DeviceGetCount         uintptr `dl:"cuDeviceGetCount"`
	DeviceGetName          uintptr `dl:"cuDeviceGetName"`
	DeviceGetUUID          uintptr `dl:"cuDeviceGetUuid"`
	DeviceGetInstanceUUID  uintptr `dl:"cuDeviceGetUuid_v2,optional"` // tells the parts of a divided device apart; 11.4
	DeviceGetAttribute     uintptr `dl:"cuDeviceGetAttribute"`
	DeviceTotalMem         uintptr `dl:"cuDeviceTotalMem_v2"`
	DeviceGetPCIBusID      uintptr `dl:"cuDeviceGetPCIBusId"`
	DeviceCanAccessPeer    uintptr `dl:"cuDeviceCanAccessPeer"`
	DevicePrimaryCtxRetain uintptr `dl:"cuDevicePrimaryCtxRetain"`
	DevicePrimaryCtxState  uintptr `dl:"cuDevicePrimaryCtxGetState"`

	// Contexts.
	CtxGetCurrent        uintptr `dl:"cuCtxGetCurrent"`
	CtxSetCurrent        uintptr `dl:"cuCtxSetCurrent"`
	CtxPushCurrent       uintptr `dl:"cuCtxPushCurrent_v2"`
	CtxPopCurrent        uintptr `dl:"cuCtxPopCurrent_v2"`
	CtxGetDevice         uintptr `dl:"cuCtxGetDevice"`
	CtxSynchronize       uintptr `dl:"cuCtxSynchronize"`
	CtxEnablePeerAccess  uintptr `dl:"cuCtxEnablePeerAccess"`
	CtxDisablePeerAccess uintptr `dl:"cuCtxDisablePeerAccess"`

	// Memory.
	MemAlloc             uintptr `dl:"cuMemAlloc_v2"`
	MemFree              uintptr `dl:"cuMemFree_v2"`
	MemAllocManaged      uintptr `dl:"cuMemAllocManaged"`
	MemHostAlloc         uintptr `dl:"cuMemHostAlloc"`
	MemFreeHost          uintptr `dl:"cuMemFreeHost"`
	MemHostRegister      uintptr `dl:"cuMemHostRegister_v2,optional"`
	MemHostUnregister    uintptr `dl:"cuMemHostUnregister,optional"`
	MemGetInfo           uintptr `dl:"cuMemGetInfo_v2"`
	PointerGetAttributes uintptr `dl:"cuPointerGetAttributes"`
	IPCGetMemHandle      uintptr `dl:"cuIpcGetMemHandle,optional"`
	IPCOpenMemHandle     uintptr `dl:"cuIpcOpenMemHandle_v2,optional"`
	IPCCloseMemHandle    uintptr `dl:"cuIpcCloseMemHandle,optional"`

	// Memory pools: 11.2.
	MemPoolCreate        uintptr `dl:"cuMemPoolCreate"`
	MemPoolDestroy       uintptr `dl:"cuMemPoolDestroy"`
	MemPoolSetAttribute  uintptr `dl:"cuMemPoolSetAttribute"`
	MemPoolGetAttribute  uintptr `dl:"cuMemPoolGetAttribute"`
	MemPoolSetAccess     uintptr `dl:"cuMemPoolSetAccess"`
	MemPoolTrimTo        uintptr `dl:"cuMemPoolTrimTo"`
	MemAllocFromPool     uintptr `dl:"cuMemAllocFromPoolAsync"`
	MemFreeInStreamOrder uintptr `dl:"cuMemFreeAsync"`
	MemPoolExport        uintptr `dl:"cuMemPoolExportToShareableHandle,optional"`
	MemPoolImport        uintptr `dl:"cuMemPoolImportFromShareableHandle,optional"`
	MemPoolExportPointer uintptr `dl:"cuMemPoolExportPointer,optional"`
	MemPoolImportPointer uintptr `dl:"cuMemPoolImportPointer,optional"`

	// Addresses and memory apart: 10.2.
	MemAddressReserve uintptr `dl:"cuMemAddressReserve,optional"`
	MemAddressFree    uintptr `dl:"cuMemAddressFree,optional"`
	MemCreate         uintptr `dl:"cuMemCreate,optional"`
	MemRelease        uintptr `dl:"cuMemRelease,optional"`
	MemMap            uintptr `dl:"cuMemMap,optional"`
	MemUnmap          uintptr `dl:"cuMemUnmap,optional"`
	MemSetAccess      uintptr `dl:"cuMemSetAccess,optional"`
	MemGetGranularity uintptr `dl:"cuMemGetAllocationGranularity,optional"`
	MemRetainHandle   uintptr `dl:"cuMemRetainAllocationHandle,optional"` // 11.0
	MemExport         uintptr `dl:"cuMemExportToShareableHandle,optional"`
	MemImport         uintptr `dl:"cuMemImportFromShareableHandle,optional"`
	MemGetProperties  uintptr `dl:"cuMemGetAllocationPropertiesFromHandle,optional"`

	// Copies.
	MemcpyAsync        uintptr `dl:"cuMemcpyAsync"`
	MemcpyToHost       uintptr `dl:"cuMemcpyDtoH_v2"`
	MemcpyToHostAsync  uintptr `dl:"cuMemcpyDtoHAsync_v2"`
	MemcpyToDevice     uintptr `dl:"cuMemcpyHtoDAsync_v2"`
	MemcpyWithinDevice uintptr `dl:"cuMemcpyDtoDAsync_v2"`
	MemcpyPeer         uintptr `dl:"cuMemcpyPeerAsync"`
	MemcpyBatch        uintptr `dl:"cuMemcpyBatchAsync,optional"`    // 12.8
	MemcpyBatchNow     uintptr `dl:"cuMemcpyBatchAsync_v2,optional"` // what the header calls since 13.0

	// Fills: of elements side by side, and of elements a pitch apart.
	Memset8         uintptr `dl:"cuMemsetD8Async"`
	Memset16        uintptr `dl:"cuMemsetD16Async"`
	Memset32        uintptr `dl:"cuMemsetD32Async"`
	Memset8Pitched  uintptr `dl:"cuMemsetD2D8Async"`
	Memset16Pitched uintptr `dl:"cuMemsetD2D16Async"`
	Memset32Pitched uintptr `dl:"cuMemsetD2D32Async"`

	// Streams.
	StreamCreate      uintptr `dl:"cuStreamCreate"`
	StreamDestroy     uintptr `dl:"cuStreamDestroy_v2"`
	StreamSynchronize uintptr `dl:"cuStreamSynchronize"`
	StreamQuery       uintptr `dl:"cuStreamQuery"`
	StreamWaitEvent   uintptr `dl:"cuStreamWaitEvent"`
	StreamGetCtx      uintptr `dl:"cuStreamGetCtx"`
	StreamIsCapturing uintptr `dl:"cuStreamIsCapturing,optional"`

	// Events.
	EventCreate      uintptr `dl:"cuEventCreate"`
	EventDestroy     uintptr `dl:"cuEventDestroy_v2"`
	EventRecord      uintptr `dl:"cuEventRecord"`
	EventQuery       uintptr `dl:"cuEventQuery"`
	EventSynchronize uintptr `dl:"cuEventSynchronize"`
	EventElapsed     uintptr `dl:"cuEventElapsedTime"`
	EventElapsedNow  uintptr `dl:"cuEventElapsedTime_v2,optional"` // what the header calls since 12.8

	// Kernels.
	ModuleLoadData    uintptr `dl:"cuModuleLoadData"`
	ModuleLoadDataEx  uintptr `dl:"cuModuleLoadDataEx,optional"`
	ModuleUnload      uintptr `dl:"cuModuleUnload"`
	ModuleGetFunction uintptr `dl:"cuModuleGetFunction"`
	FuncGetAttribute  uintptr `dl:"cuFuncGetAttribute"`
	FuncSetAttribute  uintptr `dl:"cuFuncSetAttribute"`
	FuncGetParamInfo  uintptr `dl:"cuFuncGetParamInfo,optional"` // 12.4
	LaunchKernel      uintptr `dl:"cuLaunchKernel"`
}

// DeviceEntryPoints are the functions of a library whose threads have a current device in place of a current context.
type DeviceEntryPoints struct {
	SetDevice       uintptr
	GetLastError    uintptr // takes away what a thread's last error was
	StreamGetDevice uintptr // (stream, *int)
	StreamDevice    uintptr // returns the number, less than zero for no stream
	PointerQuery    uintptr // see pointerAttributes
	MemGetRange     uintptr // (**start, *size, address)
}
