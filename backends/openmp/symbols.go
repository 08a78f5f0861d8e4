package openmp

// library is the C entry points in use: device memory routines of OpenMP 4.5, and one of 6.0.
type library struct {
	GetNumDevices    uintptr `dl:"omp_get_num_devices"`
	GetInitialDevice uintptr `dl:"omp_get_initial_device"`
	TargetAlloc      uintptr `dl:"omp_target_alloc"`
	TargetFree       uintptr `dl:"omp_target_free"`
	TargetMemcpy     uintptr `dl:"omp_target_memcpy"`
	GetUIDFromDevice uintptr `dl:"omp_get_uid_from_device,optional"`
	// LLVM's from version 19 on: its other functions crash while no program has registered code.
	Initialize uintptr `dl:"__tgt_rtl_init,optional"`

	path string
}
