package hip

import "hamr/backends/cuda"

// introduction, entryPoints and onDevices are the structs of package cuda with HIP's names. A field without a tag is
// what HIP lacks, or what is done in another way.
type introduction struct {
	Init           uintptr // each function does it
	DriverVersion  uintptr `dl:"hipDriverGetVersion"`
	GetErrorName   uintptr `dl:"hipGetErrorName"`
	GetErrorString uintptr `dl:"hipGetErrorString"`
}

type entryPoints struct {
	// Devices.
	DeviceGet              uintptr `dl:"hipDeviceGet"`
	DeviceGetCount         uintptr `dl:"hipGetDeviceCount"`
	DeviceGetName          uintptr `dl:"hipDeviceGetName"`
	DeviceGetUUID          uintptr `dl:"hipDeviceGetUuid"`
	DeviceGetInstanceUUID  uintptr
	DeviceGetAttribute     uintptr `dl:"hipDeviceGetAttribute"`
	DeviceTotalMem         uintptr `dl:"hipDeviceTotalMem"`
	DeviceGetPCIBusID      uintptr `dl:"hipDeviceGetPCIBusId"`
	DeviceCanAccessPeer    uintptr `dl:"hipDeviceCanAccessPeer"`
	DevicePrimaryCtxRetain uintptr
	DevicePrimaryCtxState  uintptr

	// Contexts, or devices in their place.
	CtxGetCurrent        uintptr
	CtxSetCurrent        uintptr
	CtxPushCurrent       uintptr
	CtxPopCurrent        uintptr
	CtxGetDevice         uintptr `dl:"hipGetDevice"`
	CtxSynchronize       uintptr `dl:"hipDeviceSynchronize"`
	CtxEnablePeerAccess  uintptr `dl:"hipDeviceEnablePeerAccess"`
	CtxDisablePeerAccess uintptr `dl:"hipDeviceDisablePeerAccess"`

	// Memory. Host memory is not locked in place, since devices may see it at other addresses then.
	MemAlloc             uintptr `dl:"hipMalloc"`
	MemFree              uintptr `dl:"hipFree"`
	MemAllocManaged      uintptr `dl:"hipMallocManaged"`
	MemHostAlloc         uintptr `dl:"hipHostMalloc"`
	MemFreeHost          uintptr `dl:"hipHostFree"`
	MemHostRegister      uintptr
	MemHostUnregister    uintptr
	MemGetInfo           uintptr `dl:"hipMemGetInfo"`
	PointerGetAttributes uintptr
	IPCGetMemHandle      uintptr
	IPCOpenMemHandle     uintptr
	IPCCloseMemHandle    uintptr

	// Memory pools.
	MemPoolCreate        uintptr `dl:"hipMemPoolCreate,optional"`
	MemPoolDestroy       uintptr `dl:"hipMemPoolDestroy,optional"`
	MemPoolSetAttribute  uintptr `dl:"hipMemPoolSetAttribute,optional"`
	MemPoolGetAttribute  uintptr `dl:"hipMemPoolGetAttribute,optional"`
	MemPoolSetAccess     uintptr `dl:"hipMemPoolSetAccess,optional"`
	MemPoolTrimTo        uintptr `dl:"hipMemPoolTrimTo,optional"`
	MemAllocFromPool     uintptr `dl:"hipMallocFromPoolAsync,optional"`
	MemFreeInStreamOrder uintptr `dl:"hipFreeAsync,optional"`
	MemPoolExport        uintptr
	MemPoolImport        uintptr
	MemPoolExportPointer uintptr
	MemPoolImportPointer uintptr

	// Addresses and memory apart.
	MemAddressReserve uintptr
	MemAddressFree    uintptr
	MemCreate         uintptr
	MemRelease        uintptr
	MemMap            uintptr
	MemUnmap          uintptr
	MemSetAccess      uintptr
	MemGetGranularity uintptr
	MemRetainHandle   uintptr
	MemExport         uintptr
	MemImport         uintptr
	MemGetProperties  uintptr

	// Copies.
	MemcpyAsync        uintptr `dl:"hipMemcpyAsync"` // see cuda.Dialect.CopyKind
	MemcpyToHost       uintptr `dl:"hipMemcpyDtoH"`
	MemcpyToHostAsync  uintptr `dl:"hipMemcpyDtoHAsync"`
	MemcpyToDevice     uintptr `dl:"hipMemcpyHtoDAsync"`
	MemcpyWithinDevice uintptr `dl:"hipMemcpyDtoDAsync"`
	MemcpyPeer         uintptr `dl:"hipMemcpyPeerAsync"`
	MemcpyBatch        uintptr
	MemcpyBatchNow     uintptr

	// Fills: of elements side by side, and of elements a pitch apart.
	Memset8         uintptr `dl:"hipMemsetD8Async"`
	Memset16        uintptr `dl:"hipMemsetD16Async"`
	Memset32        uintptr `dl:"hipMemsetD32Async"`
	Memset8Pitched  uintptr `dl:"hipMemset2DAsync"`
	Memset16Pitched uintptr
	Memset32Pitched uintptr

	// Streams.
	StreamCreate      uintptr `dl:"hipStreamCreateWithFlags"`
	StreamDestroy     uintptr `dl:"hipStreamDestroy"`
	StreamSynchronize uintptr `dl:"hipStreamSynchronize"`
	StreamQuery       uintptr `dl:"hipStreamQuery"`
	StreamWaitEvent   uintptr `dl:"hipStreamWaitEvent"`
	StreamGetCtx      uintptr
	StreamIsCapturing uintptr `dl:"hipStreamIsCapturing"`

	// Events.
	EventCreate      uintptr `dl:"hipEventCreateWithFlags"`
	EventDestroy     uintptr `dl:"hipEventDestroy"`
	EventRecord      uintptr `dl:"hipEventRecord"`
	EventQuery       uintptr `dl:"hipEventQuery"`
	EventSynchronize uintptr `dl:"hipEventSynchronize"`
	EventElapsed     uintptr `dl:"hipEventElapsedTime"`
	EventElapsedNow  uintptr

	// Kernels.
	ModuleLoadData    uintptr `dl:"hipModuleLoadData"`
	ModuleLoadDataEx  uintptr // it compiles nothing, and has no log
	ModuleUnload      uintptr `dl:"hipModuleUnload"`
	ModuleGetFunction uintptr `dl:"hipModuleGetFunction"`
	FuncGetAttribute  uintptr `dl:"hipFuncGetAttribute"`
	FuncSetAttribute  uintptr // takes a function of the host's
	FuncGetParamInfo  uintptr
	LaunchKernel      uintptr `dl:"hipModuleLaunchKernel"`
}

type onDevices struct {
	SetDevice       uintptr `dl:"hipSetDevice"`
	GetLastError    uintptr `dl:"hipGetLastError"`
	StreamGetDevice uintptr `dl:"hipStreamGetDevice,optional"`   // 5.6
	StreamDevice    uintptr `dl:"hipGetStreamDeviceId,optional"` // what was there before
	PointerQuery    uintptr `dl:"hipPointerGetAttributes"`
	MemGetRange     uintptr `dl:"hipMemGetAddressRange"`
}

// The compiler compares the fields.
var (
	_ = cuda.Introduction(introduction{})
	_ = cuda.EntryPoints(entryPoints{})
	_ = cuda.DeviceEntryPoints(onDevices{})
)
