// Package pyhamr is the façade that gopy exports to Python: functions of numbers and
// plain texts, each a spelling of one in internal/bridge. What takes or gives arrays,
// lists and structs Python's extension calls as C functions instead (hamr/functions.h).
// A function that fails raises the Python exception that pyerror makes of its error.
//
// A function marked hamr:blocking may run long, so Python's lock is released
// round it; the others are so short that releasing it would cost more than the
// call.
package pyhamr

import (
	"runtime"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/all"
	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
	_ "hamr/pyhamr/internal/capi" // exported to C
)

//go:generate go run hamr/internal/facadestub ..

// version is set by the build from pyproject.toml.
var version = "0.0.0+unset"

func init() { cabi.SetVersion(version) }

// Version returns hamr's version.
func Version() string { return version }

// GoVersion returns the version of the Go toolchain that built the library.
func GoVersion() string { return runtime.Version() }

// Table returns the address of this copy's hamr_functions.
func Table() uint64 { return cabi.Table() }

// FreeFunction returns the address of the C function that frees memory of a host allocator, or 0.
func FreeFunction(allocator int) uint64 {
	return uint64(all.FreeFunction(backends.Allocator(allocator)))
}

// Import returns the address of memory, of least bytes and more, that Export described, maybe in another process. The
// caller frees it by the allocator.
func Import(allocator, device int, handle string, least int) (uint64, error) {
	at, err := bridge.Import(backends.Allocator(allocator), device, handle, least)
	return uint64(at), err
}

// LiveReferences returns how many references to memory Python holds.
func LiveReferences() int { return bridge.LiveReferences() }

// PreferredAllocator returns the value of the best allocator on this machine for the host, or else for devices.
//
//hamr:blocking
func PreferredAllocator(host bool) (int, error) {
	found, err := bridge.PreferredAllocator(host)
	return int(found), err
}

// ParseElement returns the number of the element type with a NumPy name, typestr or short code.
func ParseElement(name string) (int, error) {
	t, err := bridge.ParseElement(name)
	return int(t), err
}

// ParseUpstreamElement returns the number of the element type that one of HAMR's 13 buffer names ends in.
func ParseUpstreamElement(name string) (int, error) {
	t, err := arrayiface.ParseUpstreamName(name)
	return int(t), err
}

// ParseFormat returns the number of the element type with a PEP 3118 format.
func ParseFormat(format string, itemsize int) (int, error) {
	t, err := arrayiface.ParseBufferFormat(format, itemsize)
	return int(t), err
}

// Configure sets what the settings of an environment variable's name are taken
// for: Go does not see what Python puts into the environment later.
func Configure(name, value string) int {
	bridge.Settings.Set(name, value)
	return 0
}

// SetVerbose makes every allocation, free, copy and handle a line: 0 none, 1 on standard error, 2 kept for TakeLog.
func SetVerbose(level int) (int, error) { return 0, bridge.SetVerbose(level) }

// ResetPeaks makes every peak the present number of bytes.
func ResetPeaks() int {
	bridge.ResetPeaks()
	return 0
}

// LimitPool limits what is taken for an allocator on a device; -2 bytes is the limit of the start.
//
//hamr:blocking
func LimitPool(allocator, device, bytes int) (int, error) {
	return 0, bridge.LimitPool(backends.Allocator(allocator), device, int64(bytes))
}

// Trim gives memory back that could not be released yet, and to the system what backends keep for reuse.
//
//hamr:blocking
func Trim() (int, error) { return 0, bridge.Trim() }
