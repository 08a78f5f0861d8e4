package cuda

// The settings, as names of environment variables.
const (
	// LibrarySetting is the driver library to load in place of the usual ones.
	LibrarySetting = "HAMR_CUDA_LIBRARY"
	// ThresholdSetting is how many bytes of freed memory each of a device's two pools,
	// the driver's and that of plain memory, keeps for reuse. The default is a
	// thirty-second of the device's memory.
	ThresholdSetting = "HAMR_CUDA_POOL_RELEASE_THRESHOLD"
	// PoolSetting "0" takes plain device memory and page-locked memory from the driver each time, and gives it back each
	// time. "check" overwrites memory that is given back, so that whoever still uses it reads something else.
	PoolSetting = "HAMR_CUDA_POOL"
	// PoolLimitSetting is how many bytes of plain memory each device's pool may take
	// from the driver. The default is no limit.
	PoolLimitSetting = "HAMR_CUDA_POOL_LIMIT"
	// GrowthSetting is how many bytes of addresses each allocation of CUDAVMM reserves, at
	// least its size. The default is as many as the device has memory.
	GrowthSetting = "HAMR_CUDA_VMM_RESERVE"
	// PinnedPoolLimitSetting is how many bytes of page-locked memory may be taken from the
	// driver. The default is no limit.
	PinnedPoolLimitSetting = "HAMR_PINNED_POOL_LIMIT"
	// PinnedThresholdSetting is how many bytes of freed page-locked memory are kept for reuse.
	// The default is a sixteenth of the host's memory.
	PinnedThresholdSetting = "HAMR_PINNED_POOL_RELEASE_THRESHOLD"
	// PoolSharingSetting "1" lets other processes import memory of the driver's pools. These may then keep what is
	// freed, whatever ThresholdSetting says.
	PoolSharingSetting = "HAMR_CUDA_POOL_SHARED"
	// PeerSetting "0" keeps devices from reaching each other's memory: copies between them go through the host.
	PeerSetting = "HAMR_CUDA_PEER_ACCESS"
)
