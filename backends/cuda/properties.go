package cuda

import (
	"errors"

	"hamr/backends"
)

// Attributes that nothing here needs but Properties, as CUDA's driver numbers them.
const (
	AttributeMaxThreads           = 1 // of a block
	AttributeMaxBlockX            = 2
	AttributeMaxBlockY            = 3
	AttributeMaxBlockZ            = 4
	AttributeMaxGridX             = 5
	AttributeMaxGridY             = 6
	AttributeMaxGridZ             = 7
	AttributeSharedBytes          = 8 // of a block
	AttributeConstantBytes        = 9
	AttributeWarpSize             = 10
	AttributeMaxPitch             = 11
	AttributeRegisters            = 12 // of a block
	AttributeClockRate            = 13
	AttributeTextureAlignment     = 14
	AttributeKernelTimeout        = 17
	AttributeIntegrated           = 18
	AttributeMapsHostMemory       = 19
	AttributeComputeMode          = 20
	AttributeConcurrentKernels    = 31
	AttributeECC                  = 32
	AttributeMemoryClockRate      = 36
	AttributeMemoryBusWidth       = 37
	AttributeL2Bytes              = 38
	AttributeResidentThreads      = 39 // of a multiprocessor
	AttributeCopyEngines          = 40
	AttributeUnifiedAddressing    = 41
	AttributeStreamPriorities     = 78
	AttributeResidentSharedBytes  = 81 // of a multiprocessor
	AttributeResidentRegisters    = 82 // of a multiprocessor
	AttributePageableMemory       = 88
	AttributeConcurrentManaged    = 89
	AttributeCooperativeLaunch    = 95
	AttributeMaxSharedBytesOptIn  = 97
	AttributeMaxResidentBlocks    = 106 // of a multiprocessor
	AttributeReservedBytesOfBlock = 111
)

// properties are the names of attributes. Those that Dialect.Attributes leaves out are left out.
var properties = []struct {
	name      string
	attribute int
}{

	{"compute_capability_major", AttributeMajor},
	{"compute_capability_minor", AttributeMinor},
	{"multiprocessor_count", AttributeMultiprocessors},
	{"warp_size", AttributeWarpSize},
	{"max_threads_per_block", AttributeMaxThreads},
	{"max_threads_per_multiprocessor", AttributeResidentThreads},
	{"max_blocks_per_multiprocessor", AttributeMaxResidentBlocks},
	{"max_block_dim_x", AttributeMaxBlockX},
	{"max_block_dim_y", AttributeMaxBlockY},
	{"max_block_dim_z", AttributeMaxBlockZ},
	{"max_grid_dim_x", AttributeMaxGridX},
	{"max_grid_dim_y", AttributeMaxGridY},
	{"max_grid_dim_z", AttributeMaxGridZ},
	{"max_shared_memory_per_block", AttributeSharedBytes},
	{"max_shared_memory_per_block_optin", AttributeMaxSharedBytesOptIn},
	{"max_shared_memory_per_multiprocessor", AttributeResidentSharedBytes},
	{"reserved_shared_memory_per_block", AttributeReservedBytesOfBlock},
	{"max_registers_per_block", AttributeRegisters},
	{"max_registers_per_multiprocessor", AttributeResidentRegisters},
	{"total_constant_memory", AttributeConstantBytes},
	{"l2_cache_size", AttributeL2Bytes},
	{"max_pitch", AttributeMaxPitch},
	{"texture_alignment", AttributeTextureAlignment},
	{"clock_rate", AttributeClockRate},
	{"memory_clock_rate", AttributeMemoryClockRate},
	{"global_memory_bus_width", AttributeMemoryBusWidth},
	{"async_engine_count", AttributeCopyEngines},
	{"compute_mode", AttributeComputeMode},
	{"concurrent_kernels", AttributeConcurrentKernels},
	{"concurrent_managed_access", AttributeConcurrentManaged},
	{"cooperative_launch", AttributeCooperativeLaunch},
	{"can_map_host_memory", AttributeMapsHostMemory},
	{"ecc_enabled", AttributeECC},
	{"integrated", AttributeIntegrated},
	{"kernel_exec_timeout", AttributeKernelTimeout},
	{"managed_memory", AttributeManagedMemory},
	{"memory_pools_supported", AttributeMemoryPools},
	{"pageable_memory_access", AttributePageableMemory},
	{"stream_priorities_supported", AttributeStreamPriorities},
	{"unified_addressing", AttributeUnifiedAddressing},
}

// Properties implements backends.PropertyReporter.
func (b *contextFloor) Properties(number int) ([]backends.Property, error) {
	d, err := b.device(number)
	if err != nil {
		return nil, err
	}
	list := make([]backends.Property, 0, len(properties))
	for _, p := range properties {
		if _, known := b.dialect.nativeAttribute(p.attribute); !known {
			continue
		}
		value, err := b.attribute(d, p.attribute)
		var failed *backends.DeviceError
		if errors.As(err, &failed) && failed.Code == invalidValue {
			continue // a driver that is older than the attribute
		}
		if err != nil {
			return nil, err
		}
		list = append(list, backends.Property{Name: p.name, Value: value})
	}
	return list, nil
}
