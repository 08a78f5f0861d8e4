// Package backends states the contract between the buffer core and a device
// runtime: which allocators exist, who can reach their memory, and what a
// backend must be able to do. It imports nothing else of this module.
package backends

import (
	"fmt"
	"strings"
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
)

// Space is where the code that touches memory runs.
type Space uint8

// The spaces.
const (
	SpaceHost Space = iota
	SpaceCUDA
	SpaceHIP
	SpaceOpenMP
	spaceCount
)

var spaceNames = [spaceCount]string{"host", "cuda", "hip", "openmp"}

// String returns the name users type: "host", "cuda", "hip", "openmp".
func (s Space) String() string {
	if s < spaceCount {
		return spaceNames[s]
	}
	return fmt.Sprintf("Space(%d)", uint8(s))
}

// ParseSpace is the inverse of Space.String.
func ParseSpace(name string) (Space, error) {
	for i, n := range spaceNames {
		if n == name {
			return Space(i), nil
		}
	}
	return 0, fmt.Errorf("space %q is unknown: accepted are %s", name, strings.Join(spaceNames[:], ", "))
}

// Spaces lists every space.
func Spaces() []Space {
	return []Space{SpaceHost, SpaceCUDA, SpaceHIP, SpaceOpenMP}
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
	// DeviceOnly is memory that the host cannot touch.
	DeviceOnly
)

// reachSet is a bit set of Space.
type reachSet uint8

func spaces(list ...Space) (set reachSet) {
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

type allocatorFacts struct {
	name    string
	backend string // Backend.Name of the backend that serves it
	kind    MemoryKind
	reach   reachSet // who can use the memory in place
}

// facts is the one table of who can reach what, from HAMR's
// {host,cuda,hip,openmp}_accessible predicates.
var facts = [...]allocatorFacts{
	CPP:         {"cpp", "host", Pageable, spaces(SpaceHost)},
	Malloc:      {"malloc", "host", Pageable, spaces(SpaceHost)},
	CUDA:        {"cuda", "cuda", DeviceOnly, spaces(SpaceCUDA, SpaceHIP, SpaceOpenMP)},
	CUDAAsync:   {"cuda_async", "cuda", DeviceOnly, spaces(SpaceCUDA, SpaceHIP, SpaceOpenMP)},
	CUDAUnified: {"cuda_uva", "cuda", Managed, spaces(SpaceHost, SpaceCUDA, SpaceHIP, SpaceOpenMP)},
	CUDAHost:    {"cuda_host", "cuda", Pinned, spaces(SpaceHost)},
	HIP:         {"hip", "hip", DeviceOnly, spaces(SpaceCUDA, SpaceHIP)},
	HIPUnified:  {"hip_uva", "hip", Managed, spaces(SpaceHost, SpaceCUDA, SpaceHIP)},
	OpenMP:      {"openmp", "openmp", DeviceOnly, spaces(SpaceCUDA, SpaceOpenMP)},
}

// Allocators lists every allocator that can hand out memory, in numeric order.
func Allocators() []Allocator {
	list := make([]Allocator, len(facts))
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
		return facts[a].name
	}
	return fmt.Sprintf("Allocator(%d)", int32(a))
}

// Valid reports whether a can hand out memory on some machine.
func (a Allocator) Valid() bool { return a >= 0 && int(a) < len(facts) }

func (a Allocator) facts() allocatorFacts {
	if a.Valid() {
		return facts[a]
	}
	return allocatorFacts{}
}

// Backend returns the name of the backend that serves a, or "".
func (a Allocator) Backend() string { return a.facts().backend }

// Kind returns the kind of memory that a hands out.
func (a Allocator) Kind() MemoryKind { return a.facts().kind }

// ReachableFrom reports whether code running in space s can use memory of a
// without a copy, on a machine where both runtimes are present.
func (a Allocator) ReachableFrom(s Space) bool {
	return s < spaceCount && a.facts().reach&(1<<s) != 0
}

// ParseAllocator is the inverse of Allocator.String.
func ParseAllocator(name string) (Allocator, error) {
	known := make([]string, len(facts))
	for i, f := range facts {
		if f.name == name {
			return Allocator(i), nil
		}
		known[i] = f.name
	}
	return None, fmt.Errorf("allocator %q is unknown: accepted are %s", name, strings.Join(known, ", "))
}
