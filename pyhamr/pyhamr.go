// Package pyhamr is the façade that gopy exports to Python: flat functions of
// integers and plain strings. Arrays are passed as addresses of hamr_array
// structs (hamr_abi.h); functions that make something write it to the struct at
// result. Errors carry the Python exception in their text (bridge.Text).
//
// A function marked hamr:blocking may run long, so Python's lock is released
// round it; the others are so short that releasing it would cost more than the
// call.
package pyhamr

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/all"
	"hamr/pyhamr/internal/bridge"
	"hamr/pyhamr/internal/cabi"
)

// version is set by the build from pyproject.toml.
var version = "0.0.0+unset"

// Version returns hamr's version.
func Version() string { return version }

// GoVersion returns the version of the Go toolchain that built the library.
func GoVersion() string { return runtime.Version() }

// Table returns the address of this copy's hamr_functions.
func Table() uint64 { return cabi.Table() }

// FreeFunction returns the address of the C function that frees memory of a host
// allocator, or 0.
func FreeFunction(allocator int) uint64 {
	return uint64(all.FreeFunction(backends.Allocator(allocator)))
}

// LiveReferences returns how many references to memory Python holds.
func LiveReferences() int { return bridge.Live() }

// Reach returns a bit for each space that reaches an allocator's memory in place.
func Reach(allocator int) int { return bridge.Reach(backends.Allocator(allocator)) }

// Allocators returns a JSON object of each allocator's name and value.
func Allocators() string {
	values := map[string]int{}
	for _, a := range backends.Allocators() {
		values[a.String()] = int(a)
	}
	return encode(values)
}

// PreferredAllocator returns the value of the best allocator on this machine for
// the host, or else for devices.
//
//hamr:blocking
func PreferredAllocator(forHost bool) int {
	if forHost {
		return int(bridge.Runtime.HostAllocator())
	}
	return int(bridge.Runtime.DeviceAllocator())
}

// Elements returns a JSON array of each element type's number, names, size and
// DLPack code.
func Elements() string {
	type row struct {
		Number  int    `json:"number"`
		Name    string `json:"name"`
		Typestr string `json:"typestr"`
		Format  string `json:"format"`
		Size    int    `json:"size"`
		DLPack  int    `json:"dlpack"`
	}
	var rows []row
	for _, t := range arrayiface.Types() {
		code, _ := t.DLPack()
		rows = append(rows, row{int(t), t.String(), t.Typestr(), t.BufferFormat(), t.Size(), int(code)})
	}
	return encode(rows)
}

// ParseElement returns the number of the element type with a NumPy name,
// typestr or short code.
func ParseElement(name string) (int, error) { return element(arrayiface.ParseName(name)) }

// ParseUpstreamElement returns the number of the element type that one of HAMR's
// 13 buffer names ends in.
func ParseUpstreamElement(name string) (int, error) {
	return element(arrayiface.ParseUpstreamName(name))
}

// ParseFormat returns the number of the element type with a PEP 3118 format.
func ParseFormat(format string, itemSize int) (int, error) {
	return element(arrayiface.ParseBufferFormat(format, itemSize))
}

// ParseDLPack returns the number of the element type with a DLDataType.
func ParseDLPack(code, bits, lanes int) (int, error) {
	return element(arrayiface.FromDLPack(uint8(code), uint8(bits), uint16(lanes)))
}

func element(t arrayiface.ElementType, err error) (int, error) {
	if err != nil {
		return 0, errors.New(bridge.Text(err))
	}
	return int(t), nil
}

// CheckInterface applies the rules of the array interface to fields whose Python
// types are right, and returns the number of the element type. shape and strides
// are integers joined by commas; "-" stands for no strides. length is that of
// the buffer object that data is, or -1 where data is a pointer.
func CheckInterface(typestr, shape, strides string, pointer uint64, offset, length int, masked bool, version int) (int, error) {
	number := 0
	_, err := run(func() error {
		f := arrayiface.Fields{Typestr: typestr, HasData: true, Address: uintptr(pointer), Offset: offset,
			BufferLength: length, Masked: masked, Version: version}
		var err error
		if f.Shape, err = integers(shape); err != nil {
			return err
		}
		if strides != "-" {
			if f.Strides, err = integers(strides); err != nil {
				return err
			}
		}
		parsed, err := arrayiface.ParseFields(f)
		number = int(parsed.Layout.Type)
		return err
	})
	return number, err
}

func integers(joined string) ([]int, error) {
	list := []int{}
	if joined == "" {
		return list, nil
	}
	for _, s := range strings.Split(joined, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("%q is not a list of integers", joined)
		}
		list = append(list, n)
	}
	return list, nil
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(text)
}

// onArrays is run for what may wait for streams that arrays were used on.
func onArrays(f func() error) (int, error) {
	defer bridge.Calls.Leave(bridge.Calls.Enter())
	return run(f)
}

// run calls f behind a panic barrier and encodes its error.
func run(f func() error) (int, error) {
	err := func() (err error) {
		defer bridge.Guard(&err)
		return f()
	}()
	if err != nil {
		return 0, errors.New(bridge.Text(err))
	}
	return 0, nil
}
