// Package hip serves memory of AMD's devices through the HIP runtime alone, which is looked for at run time. HIP's
// functions are CUDA's by design, so only names, numbers and layouts are here, and all else is in package cuda: see
// cuda.Dialect. Contexts are deprecated in HIP, so threads work on devices.
package hip

import (
	"fmt"
	"reflect"
	"strings"

	"hamr/backends"
	"hamr/backends/cuda"
	"hamr/backends/internal/dl"
)

// The settings, as names of environment variables; the others are cuda's with HIP in place of CUDA.
const (
	// LibrarySetting is the runtime to load in place of the usual ones.
	LibrarySetting = "HAMR_HIP_LIBRARY"
	settings       = "HAMR_HIP_"
)

const (
	// oldestRuntime is the first that is known to have all functions in use: that of Debian 12.
	oldestRuntime = 50200000
	// renumbered is the version from which on memory of hosts and devices has other numbers.
	renumbered = 60000000
)

const copyDefault = 4 // hipMemcpyDefault: the addresses tell which way

var dialect = &cuda.Dialect{
	Name:        "hip",
	Settings:    settings,
	Libraries:   libraries,
	Oldest:      oldestRuntime,
	VersionText: versionText,
	Allocators: cuda.Allocators{Plain: backends.HIP, Ordered: backends.HIPAsync, Managed: backends.HIPUnified,
		Pinned: backends.HIPHost, Growing: backends.None},
	Introduction:      reflect.TypeFor[introduction](),
	EntryPoints:       reflect.TypeFor[entryPoints](),
	DeviceEntryPoints: reflect.TypeFor[onDevices](),
	CodeNames:         codeNames,
	UnknownCode:       "hipError",
	ReturnsText:       true,
	// The numbers are those of ROCm 5, 6 and 7.
	Attributes: map[int]int{
		cuda.AttributeMultiprocessors: 63, cuda.AttributeMajor: 23, cuda.AttributeMinor: 61,
		cuda.AttributeManagedMemory: 24, cuda.AttributeHostPageTables: 66, cuda.AttributeMemoryPools: 88,
		cuda.AttributeMaxThreads: 56, cuda.AttributeMaxBlockX: 26, cuda.AttributeMaxBlockY: 27,
		cuda.AttributeMaxBlockZ: 28, cuda.AttributeMaxGridX: 29, cuda.AttributeMaxGridY: 30,
		cuda.AttributeMaxGridZ: 31, cuda.AttributeSharedBytes: 74, cuda.AttributeConstantBytes: 83,
		cuda.AttributeWarpSize: 87, cuda.AttributeMaxPitch: 58, cuda.AttributeRegisters: 71,
		cuda.AttributeClockRate: 5, cuda.AttributeTextureAlignment: 81, cuda.AttributeKernelTimeout: 18,
		cuda.AttributeIntegrated: 16, cuda.AttributeMapsHostMemory: 3, cuda.AttributeComputeMode: 6,
		cuda.AttributeConcurrentKernels: 8, cuda.AttributeECC: 0, cuda.AttributeMemoryClockRate: 60,
		cuda.AttributeMemoryBusWidth: 59, cuda.AttributeL2Bytes: 19, cuda.AttributeResidentThreads: 57,
		cuda.AttributeCopyEngines: 2, cuda.AttributeUnifiedAddressing: 85, cuda.AttributeStreamPriorities: 78,
		cuda.AttributeResidentSharedBytes: 76, cuda.AttributeResidentRegisters: 72,
		cuda.AttributePageableMemory: 65, cuda.AttributeConcurrentManaged: 9, cuda.AttributeCooperativeLaunch: 10,
		cuda.AttributeMaxSharedBytesOptIn: 75, cuda.AttributeMaxResidentBlocks: 25,
		cuda.AttributeReservedBytesOfBlock: 73,
	},
	UUIDText: uuidText,
	MemoryTypes: func(version int) (host, device, managed int32) {
		if version < renumbered {
			return 0, 1, -2 // managed memory has no number of its own, and -1 is none
		}
		return 1, 2, 3
	},
	LegacyIsNull: true,
	CopyKind:     copyDefault,
	ReadsLate:    true,
	EndsWork:     true,
	ForgetsForks: true,
	FreesForOne:  true,
	Kernels: func(library dl.Library, _ string) ([]byte, bool, error) {
		code, err := compile(library)
		return code, true, err
	},
	Compile: compileForUser,
}

// New returns the backend of the allocators HIP, HIPAsync, HIPUnified and HIPHost. Probe reads the
// settings through lookup.
func New(lookup func(string) string) *cuda.Backend { return cuda.NewOf(dialect, lookup) }

// versionText writes what hipDriverGetVersion returns: 50221153 is 5.2.21153.
func versionText(version int) string {
	return fmt.Sprintf("%d.%d.%d", version/10_000_000, version/100_000%100, version%100_000)
}

// uuidText writes a UUID as rocminfo does: the bytes are hexadecimal digits themselves. UUIDs of other runtimes are
// written as CUDA's are.
func uuidText(id backends.UUID) string {
	if text := string(id[:]); strings.Trim(text, "0123456789abcdefABCDEF") == "" {
		return "GPU-" + strings.ToLower(text)
	}
	return "GPU-" + id.String()
}
