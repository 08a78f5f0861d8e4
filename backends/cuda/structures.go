package cuda

// What several of the driver's structures have.
const (
	pinnedAllocation = 1 // CU_MEM_ALLOCATION_TYPE_PINNED: in the driver's words, device memory
	deviceLocation   = 1 // CU_MEM_LOCATION_TYPE_DEVICE
	byDescriptor     = 1 // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	noAccess         = 0 // CU_MEM_ACCESS_FLAGS_PROT_NONE
	readOnly         = 1 // CU_MEM_ACCESS_FLAGS_PROT_READ
	readWrite        = 3 // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
)

// location is the driver's CUmemLocation.
type location struct {
	kind, number int32
}

// poolProperties is the driver's CUmemPoolProps.
type poolProperties struct {
	allocation, handles int32
	location            location
	security            uintptr
	largest             uint64
	usage               uint16
	_                   [54]byte
}

// poolAccess is the driver's CUmemAccessDesc.
type poolAccess struct {
	location location
	flags    int32
}

// allocationProperties is the driver's CUmemAllocationProp.
type allocationProperties struct {
	allocation, handles int32
	location            location
	_                   uintptr
	compression         uint8
	remote              uint8 // network cards may reach it
	usage               uint16
	_                   [4]byte
}

// units describe the pieces of a device's memory that can grow.
type units struct {
	properties *allocationProperties
	bytes      int // of the least piece
	total      int // bytes of the device's memory
}

func (u *units) rounded(size int) int { return (size + u.bytes - 1) / u.bytes * u.bytes }
