// Package backends states the contract between the buffer core and a device
// runtime: which allocators exist, who can reach their memory, and what a
// backend must be able to do. It imports nothing else of this module.
package backends

//go:generate go run hamr/internal/allocatorfacts ..

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Allocator names a way of obtaining memory. The values up to OpenMP are those
// of LBL-EESA's HAMR and never change; later ones are appended.
type Allocator int32

// The allocators.
const (
	// Same asks for the allocator of the buffer that an operation starts from.
	Same Allocator = -2
	// None marks a buffer without memory.
	None Allocator = -1
	// CPP is C++'s operator new[].
	CPP Allocator = 0
	// Malloc is the C library's heap.
	Malloc Allocator = 1
	// CUDA is device memory from the CUDA driver.
	CUDA Allocator = 2
	// CUDAAsync is CUDA device memory from a stream-ordered pool.
	CUDAAsync Allocator = 3
	// CUDAUnified is CUDA managed memory ("cuda_uva").
	CUDAUnified Allocator = 4
	// CUDAHost is page-locked host memory from the CUDA driver.
	CUDAHost Allocator = 5
	// HIP is device memory from the HIP runtime.
	HIP Allocator = 6
	// HIPUnified is HIP managed memory ("hip_uva").
	HIPUnified Allocator = 7
	// OpenMP is device memory from an OpenMP target runtime.
	OpenMP Allocator = 8
	// Shared is host memory that processes share: forked children, and those that import it.
	Shared Allocator = 9
	// CUDAVMM is CUDA device memory that grows where it is ("cuda_vmm").
	CUDAVMM Allocator = 10
	// OpenCLDevice is memory for OpenCL's devices alone ("opencl_device").
	OpenCLDevice Allocator = 11
	// OpenCLSVM is memory that OpenCL's devices and the host share, which has it while it is
	// mapped ("opencl_svm").
	OpenCLSVM Allocator = 12
	// HIPAsync is HIP device memory from a stream-ordered pool.
	HIPAsync Allocator = 13
	// HIPHost is page-locked host memory from the HIP runtime.
	HIPHost Allocator = 14
	// SYCLDevice is unified shared memory for one of SYCL's devices alone ("sycl_device").
	SYCLDevice Allocator = 15
	// SYCLShared is unified shared memory that migrates between one device and the host.
	SYCLShared Allocator = 16
	// SYCLHost is unified shared memory of the host that one device reaches.
	SYCLHost Allocator = 17
)

// Space is where the code that touches memory runs.
type Space uint8

// The spaces.
const (
	SpaceHost Space = iota
	SpaceCUDA
	SpaceHIP
	SpaceOpenMP
	SpaceOpenCL
	SpaceSYCL
	spaceCount
)

// SpaceFacts are the facts of a space. C and Python have a method get_<name>_accessible for each space.
type SpaceFacts struct {
	Name string // as users type it
	Code string // what runs there, in sentences: "OpenMP target" code
}

var spaceTable = [spaceCount]SpaceFacts{
	SpaceHost:   {"host", "the host's"},
	SpaceCUDA:   {"cuda", "CUDA"},
	SpaceHIP:    {"hip", "HIP"},
	SpaceOpenMP: {"openmp", "OpenMP target"},
	SpaceOpenCL: {"opencl", "OpenCL"},
	SpaceSYCL:   {"sycl", "SYCL"},
}

// Facts returns what is known of s; nothing where there is no such space.
func (s Space) Facts() SpaceFacts {
	if s < spaceCount {
		return spaceTable[s]
	}
	return SpaceFacts{}
}

// Backend is the name of the backend whose runtime the space's code is of.
func (s Space) Backend() string { return s.String() }

// String returns the name users type, as in "host" or "cuda".
func (s Space) String() string {
	if s < spaceCount {
		return spaceTable[s].Name
	}
	return fmt.Sprintf("Space(%d)", uint8(s))
}

// ParseSpace is the inverse of Space.String.
func ParseSpace(name string) (Space, error) {
	for _, s := range Spaces() {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("space %q is unknown: accepted are %s", name, SpaceNames())
}

// SpaceNames lists the names of all spaces, for messages.
func SpaceNames() string {
	names := make([]string, spaceCount)
	for i, s := range Spaces() {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}

// Spaces lists every space.
func Spaces() []Space {
	list := make([]Space, spaceCount)
	for i := range list {
		list[i] = Space(i)
	}
	return list
}

// MemoryKind says what sort of memory an allocator hands out.
type MemoryKind uint8

// The kinds of memory.
const (
	// Pageable is ordinary host memory.
	Pageable MemoryKind = iota
	// Pinned is page-locked host memory that a device can copy from directly.
	Pinned
	// Managed migrates between host and device on access.
	Managed
	// DeviceOnly is memory that the host cannot touch, or only where Facts.Mapped says so.
	DeviceOnly
)

// Facts are all that code outside an allocator's backend may ask about it. No such code asks for an allocator by
// name.
type Facts struct {
	Name    string // as users type it
	Backend string // Backend.Name of the backend that serves it
	Kind    MemoryKind
	// Reach is where the memory can be used in place at any time: by the host, by the backend's own code, and by code of
	// another runtime on the same device, where one pointer serves both.
	Reach []Space
	// Ordered says that memory is allocated and freed in stream order, not at once.
	Ordered bool
	// Temporary lists the spaces for whose code the allocator makes temporary copies and scratch memory. Where several
	// do, the first one in the table that the device has serves.
	Temporary []Space
	// Preference is the allocator's place among those for new memory of "the device", or of "the host, to be moved to a
	// device". The least one that is not zero and whose runtime has a device serves: see
	// gobuffer.Runtime.DeviceAllocator.
	Preference int
	// DLPack is the device type of DLPack and Arrow; zero where they have none.
	DLPack int
	// Mapped says that the host uses the memory too, but only between Mapper.Map and Unmap, and devices only outside of
	// that. Reach does not name the host then, since it lists who may use the memory at any time.
	Mapped bool
	// Opaque says that addresses are numbers of the backend's own. An offset into the allocation may be added to them,
	// but neither the host nor a device dereferences them. NativeHandles returns the runtime's handles.
	Opaque bool
	// Exportable says that other processes can open the memory, by Exporter.
	Exportable bool
	// OneDevice says that Managed memory is reached by its own device alone, and by no other device of the runtime.
	OneDevice bool
}

// DLPack's device types, as dlpack.h numbers them.
const (
	dlpackHost        = 1
	dlpackCUDA        = 2
	dlpackCUDAHost    = 3
	dlpackROCm        = 10
	dlpackROCmHost    = 11
	dlpackCUDAManaged = 13
)

// table is the one place of facts; who can reach what is from HAMR's
// {host,cuda,hip,openmp}_accessible predicates.
var table = [...]Facts{
	CPP: {Name: "cpp", Backend: "host", Kind: Pageable, Reach: []Space{SpaceHost}, DLPack: dlpackHost},
	Malloc: {Name: "malloc", Backend: "host", Kind: Pageable, Reach: []Space{SpaceHost}, Temporary: []Space{SpaceHost},
		DLPack: dlpackHost},
	CUDA: {Name: "cuda", Backend: "cuda", Kind: DeviceOnly, Reach: []Space{SpaceCUDA, SpaceHIP, SpaceOpenMP},
		Temporary: []Space{SpaceCUDA}, Preference: 2, DLPack: dlpackCUDA},
	CUDAAsync: {Name: "cuda_async", Backend: "cuda", Kind: DeviceOnly, Reach: []Space{SpaceCUDA, SpaceHIP, SpaceOpenMP},
		Ordered: true, Temporary: []Space{SpaceCUDA}, Preference: 1, DLPack: dlpackCUDA},
	CUDAUnified: {Name: "cuda_uva", Backend: "cuda", Kind: Managed,
		Reach: []Space{SpaceHost, SpaceCUDA, SpaceHIP, SpaceOpenMP}, DLPack: dlpackCUDAManaged},
	CUDAHost: {Name: "cuda_host", Backend: "cuda", Kind: Pinned, Reach: []Space{SpaceHost}, Preference: 1,
		DLPack: dlpackCUDAHost},
	HIP: {Name: "hip", Backend: "hip", Kind: DeviceOnly, Reach: []Space{SpaceCUDA, SpaceHIP},
		Temporary: []Space{SpaceHIP}, Preference: 3, DLPack: dlpackROCm},
	HIPUnified: {Name: "hip_uva", Backend: "hip", Kind: Managed, Reach: []Space{SpaceHost, SpaceCUDA, SpaceHIP},
		DLPack: dlpackROCm},
	OpenMP: {Name: "openmp", Backend: "openmp", Kind: DeviceOnly, Reach: []Space{SpaceCUDA, SpaceOpenMP},
		Temporary: []Space{SpaceOpenMP}, Preference: 4},
	Shared: {Name: "shared", Backend: "host", Kind: Pageable, Reach: []Space{SpaceHost}, DLPack: dlpackHost,
		Exportable: true},
	CUDAVMM: {Name: "cuda_vmm", Backend: "cuda", Kind: DeviceOnly, Reach: []Space{SpaceCUDA, SpaceHIP, SpaceOpenMP},
		DLPack: dlpackCUDA},
	OpenCLDevice: {Name: "opencl_device", Backend: "opencl", Kind: DeviceOnly, Reach: []Space{SpaceOpenCL},
		Temporary: []Space{SpaceOpenCL}},
	OpenCLSVM: {Name: "opencl_svm", Backend: "opencl", Kind: DeviceOnly, Reach: []Space{SpaceOpenCL}, Mapped: true},
	HIPAsync: {Name: "hip_async", Backend: "hip", Kind: DeviceOnly, Reach: []Space{SpaceCUDA, SpaceHIP},
		Ordered: true, DLPack: dlpackROCm},
	HIPHost: {Name: "hip_host", Backend: "hip", Kind: Pinned, Reach: []Space{SpaceHost}, Preference: 2,
		DLPack: dlpackROCmHost},
	SYCLDevice: {Name: "sycl_device", Backend: "sycl", Kind: DeviceOnly, Reach: []Space{SpaceSYCL},
		Temporary: []Space{SpaceSYCL}},
	SYCLShared: {Name: "sycl_shared", Backend: "sycl", Kind: Managed, Reach: []Space{SpaceHost, SpaceSYCL},
		OneDevice: true, DLPack: dlpackHost},
	SYCLHost: {Name: "sycl_host", Backend: "sycl", Kind: Managed, Reach: []Space{SpaceHost, SpaceSYCL}, OneDevice: true,
		DLPack: dlpackHost},
}

// MostAllocators bounds the values of allocators, for tables that these index.
const MostAllocators = 32

// row is Facts, with what every operation asks worked out before.
type row struct {
	Facts
	reach  uint8 // a bit for each Space
	shared uint8 // likewise, of the spaces of other runtimes
}

// known is all rows: those of table, and those that files with build tags add while the package is initialised.
var known = func() (list []row) {
	for a, f := range table {
		list = added(list, Allocator(a), f)
	}
	return list
}()

// added returns list with a row for a, the next allocator. It panics where the facts contradict each other, since
// they are part of the program.
func added(list []row, a Allocator, f Facts) []row {
	switch {
	case int(a) != len(list) || a >= MostAllocators:
		panic(fmt.Sprintf("backends: allocator %s has value %d: the next one is %d, of %d", f.Name, a, len(list),
			MostAllocators))
	case f.Mapped && slices.Contains(f.Reach, SpaceHost):
		panic("backends: the host reaches memory of allocator " + f.Name + " at any time or between Map and Unmap, not both")
	case f.Opaque && (f.DLPack != 0 || slices.Contains(f.Reach, SpaceHost)):
		panic("backends: addresses of allocator " + f.Name + " are opaque: neither the host nor DLPack can use them")
	}
	r := row{Facts: f}
	for _, s := range f.Reach {
		if s == SpaceHost || s.Backend() == f.Backend {
			r.reach |= 1 << s
		} else {
			r.shared |= 1 << s
		}
	}
	return append(list, r)
}

// Allocators lists every allocator that can hand out memory, in numeric order.
func Allocators() []Allocator {
	list := make([]Allocator, len(known))
	for i := range list {
		list[i] = Allocator(i)
	}
	return list
}

// String returns upstream's name of the allocator, as in "cuda_async".
func (a Allocator) String() string {
	switch a {
	case Same:
		return "same"
	case None:
		return "none"
	}
	if a.Valid() {
		return known[a].Name
	}
	return fmt.Sprintf("Allocator(%d)", int32(a))
}

// Valid reports whether a can hand out memory on some machine.
func (a Allocator) Valid() bool { return a >= 0 && int(a) < len(known) }

// Facts returns what is known of a; nothing where a is not Valid. The caller must not
// change its slices.
func (a Allocator) Facts() Facts {
	if a.Valid() {
		return known[a].Facts
	}
	return Facts{}
}

// Backend returns the name of the backend that serves a, or "".
func (a Allocator) Backend() string {
	if a.Valid() {
		return known[a].Facts.Backend
	}
	return ""
}

// Kind returns the kind of memory that a hands out.
func (a Allocator) Kind() MemoryKind {
	if a.Valid() {
		return known[a].Facts.Kind
	}
	return Pageable
}

// Ordered reports whether memory of a is taken and given back in the order of a stream.
func (a Allocator) Ordered() bool { return a.Valid() && known[a].Facts.Ordered }

// EveryDevice reports whether all devices of the runtime reach the memory of a that one of them reaches.
func (a Allocator) EveryDevice() bool {
	return a.Valid() && known[a].Facts.Kind == Managed && !known[a].OneDevice
}

// ReachableFrom reports whether code running in space s, which is the host's or of a's own
// runtime, can use memory of a without a copy.
func (a Allocator) ReachableFrom(s Space) bool {
	return s < spaceCount && a.Valid() && known[a].reach&(1<<s) != 0
}

// SharedWith reports whether code in space s, which is of another runtime, can use memory of a without a copy where
// both have the device. A backend decides about a piece of memory: see Reacher.
func (a Allocator) SharedWith(s Space) bool {
	return s < spaceCount && a.Valid() && known[a].shared&(1<<s) != 0
}

// Temporaries lists the allocators that make temporary memory for code in space s, best
// first; a device may lack the first. The caller must not change the list.
func Temporaries(s Space) []Allocator {
	if s >= spaceCount {
		return nil
	}
	return temporaries()[s]
}

// temporaries is worked out once, since each access that copies asks for it, and only after all rows are known.
var temporaries = sync.OnceValue(func() (lists [spaceCount][]Allocator) {
	for s := range lists {
		lists[s] = preferred(func(f Facts) bool { return slices.Contains(f.Temporary, Space(s)) })
	}
	return lists
})

// Preferred lists the allocators for new memory of a device or, if pinned, for new host memory that is to be moved to
// a device. The best one is first. A machine may lack it.
func Preferred(pinned bool) []Allocator {
	return preferred(func(f Facts) bool { return f.Preference != 0 && (f.Kind == Pinned) == pinned })
}

func preferred(wanted func(Facts) bool) (list []Allocator) {
	for _, a := range Allocators() {
		if wanted(known[a].Facts) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Allocator) int { return known[a].Preference - known[b].Preference })
	return list
}

// ParseAllocator is the inverse of Allocator.String.
func ParseAllocator(name string) (Allocator, error) {
	names := make([]string, len(known))
	for i := range known {
		if known[i].Name == name {
			return Allocator(i), nil
		}
		names[i] = known[i].Name
	}
	return None, fmt.Errorf("allocator %q is unknown: accepted are %s", name, strings.Join(names, ", "))
}
