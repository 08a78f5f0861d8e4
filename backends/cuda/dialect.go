package cuda

import (
	"reflect"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

// Dialect is how a library differs from CUDA's driver that has the same functions. Arguments and codes are the same
// where nothing is said here. HIP's runtime is such a library by design. All other code of this package serves both.
type Dialect struct {
	// Name is the backend's, and that of its errors.
	Name string
	// Settings takes the place of "HAMR_CUDA_" in the names of settings.
	Settings string
	// Libraries lists what to look for.
	Libraries func() []string
	// Oldest is the first version that serves, VersionText how one is written.
	Oldest      int
	VersionText func(version int) string

	Allocators Allocators

	// Introduction, EntryPoints and DeviceEntryPoints are types with the fields of those here, whose
	// tags are the library's names. What the library has not has no tag. The last one is nil for a
	// library with contexts.
	Introduction, EntryPoints, DeviceEntryPoints reflect.Type

	// CodeNames are the names of codes, and UnknownCode what comes before the number of one without.
	CodeNames   map[int32]string
	UnknownCode string
	// ReturnsText says that the functions that put a code into words take it alone, and return the text.
	ReturnsText bool

	// Attributes are the library's numbers for the constants of that name; one that is left out is zero on
	// every device. Nil are CUDA's own.
	Attributes map[int]int
	// UUIDText writes a device's UUID as the vendor's tools do.
	UUIDText func(backends.UUID) string
	// MemoryTypes are the numbers of host, device and managed memory in a version, as
	// DeviceEntryPoints.PointerQuery gives them.
	MemoryTypes func(version int) (host, device, managed int32)

	// LegacyIsNull says that the legacy stream has the handle zero and no other.
	LegacyIsNull bool
	// CopyKind follows the size among the arguments of EntryPoints.MemcpyAsync; zero if nothing does.
	CopyKind uintptr
	// ReadsLate says that copies out of ordinary host memory may read it after they have returned.
	ReadsLate bool

	// EndsWork says that the end of a stream may end the work on it: it is waited for before.
	EndsWork bool
	// ForgetsForks says that the library does not tell a forked child that its parent has used a device.
	ForgetsForks bool
	// FreesForOne says that freeing page-locked memory waits for the current device alone.
	FreesForOne bool

	// Kernels returns what the library loads a kernel from, for the thread's current device; nil where
	// there is none. Whole says that it has all kernels.
	Kernels func(library dl.Library, name string) (code []byte, whole bool, err error)
	// Compile is Backend.Compile, with the thread's current device that of the source. Nil is NVRTC's.
	Compile func(library dl.Library, source backends.CodeSource) (backends.Code, error)
}

// Allocators are those that a backend serves; backends.None where it has none of a kind.
type Allocators struct {
	Plain   backends.Allocator // device memory
	Ordered backends.Allocator // device memory from the library's own pool
	Managed backends.Allocator
	Pinned  backends.Allocator
	Growing backends.Allocator // device memory that grows where it is
}

// nativeAttribute is the library's number for an attribute; ok is false if it has none.
func (d *Dialect) nativeAttribute(which int) (number int, ok bool) {
	if d.Attributes == nil {
		return which, true
	}
	number, ok = d.Attributes[which]
	return number, ok
}
