package cuda

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"hamr/backends"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/rtc"
)

// CompilerSetting is the NVRTC to load in place of the usual ones.
const CompilerSetting = "HAMR_NVRTC_LIBRARY"

const compilerName = "nvrtc"

// compilerEntryPoints are NVRTC's functions.
type compilerEntryPoints struct {
	CreateProgram  uintptr `dl:"nvrtcCreateProgram"`
	CompileProgram uintptr `dl:"nvrtcCompileProgram"`
	DestroyProgram uintptr `dl:"nvrtcDestroyProgram"`
	CodeSize       uintptr `dl:"nvrtcGetCUBINSize,optional"` // 11.1
	Code           uintptr `dl:"nvrtcGetCUBIN,optional"`
	TextSize       uintptr `dl:"nvrtcGetPTXSize"`
	Text           uintptr `dl:"nvrtcGetPTX"`
	LogSize        uintptr `dl:"nvrtcGetProgramLogSize"`
	Log            uintptr `dl:"nvrtcGetProgramLog"`
	ErrorString    uintptr `dl:"nvrtcGetErrorString"`
}

// compilerIntroduction is the functions that tell which devices NVRTC compiles for: 11.2.
type compilerIntroduction struct {
	CountArchitectures uintptr `dl:"nvrtcGetNumSupportedArchs,optional"`
	Architectures      uintptr `dl:"nvrtcGetSupportedArchs,optional"`
}

// nvrtc is a compiler with the architectures that it knows, such as 90, or none if it cannot tell.
type nvrtc struct {
	rtc.Compiler
	architectures []int
}

// compilerLibraries are what the loader is asked for, and then what a toolkit has.
func compilerLibraries(lookup func(string) string, more []string) []string {
	if override := lookup(CompilerSetting); override != "" {
		return []string{override}
	}
	names := []string{"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so.11.1"}
	names = append(names, more...)
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		folder := lookup(variable)
		if folder == "" {
			continue
		}
		for _, below := range []string{"lib64", "lib", "targets/x86_64-linux/lib"} {
			names = append(names, filepath.Join(folder, below, "libnvrtc.so"))
		}
	}
	return names
}

// loadCompiler is called for each program, since a loaded library costs the loader nothing.
func loadCompiler(tried []string) (*nvrtc, error) {
	library, err := dl.Open(tried, "")
	if err != nil {
		return nil, &backends.UnavailableError{Backend: compilerName, Tried: tried, Reason: err.Error()}
	}
	entries, about := new(compilerEntryPoints), new(compilerIntroduction)
	if err := errors.Join(dl.Bind(library, entries), dl.Bind(library, about)); err != nil {
		return nil, &backends.UnavailableError{Backend: compilerName, Tried: tried, Reason: err.Error()}
	}
	c := &nvrtc{Compiler: rtc.Compiler{EntryPoints: rtc.EntryPoints(*entries), API: compilerName}}
	count := new(int32)
	if about.Architectures == 0 ||
		int32(dl.Call(about.CountArchitectures, uintptr(unsafe.Pointer(count)))) != 0 || *count <= 0 {
		return c, nil
	}
	list := make([]int32, *count)
	if int32(dl.Call(about.Architectures, uintptr(unsafe.Pointer(unsafe.SliceData(list))))) == 0 {
		for _, each := range list {
			c.architectures = append(c.architectures, int(each))
		}
		slices.Sort(c.architectures)
	}
	return c, nil
}

// target is the architecture to compile for on a device of a compute capability, as 90: the device's own
// code or, where the compiler is older than the device, PTX for the newest device that it knows.
func (c *nvrtc) target(capability int) string {
	known := len(c.architectures) == 0 || slices.Contains(c.architectures, capability)
	if known && c.Code != 0 {
		return "sm_" + strconv.Itoa(capability)
	}
	for _, each := range slices.Backward(c.architectures) {
		if each <= capability {
			return "compute_" + strconv.Itoa(each)
		}
	}
	return "compute_" + strconv.Itoa(capability)
}

// Compile compiles for the source's device, or for the architecture that it names: "sm_90" is code for
// that alone, "compute_80" text that the driver compiles for it and any later one.
func (b *contextFloor) Compile(source backends.CodeSource) (made backends.Code, err error) {
	d, err := b.device(source.Device)
	if err != nil {
		return made, err
	}
	for _, each := range append([]string{source.Text, source.Name}, source.Options...) {
		if strings.Contains(each, "\x00") {
			return made, fmt.Errorf("%q has a zero, which ends a text", each)
		}
	}
	if compile := b.dialect.Compile; compile != nil {
		v, err := b.enter(source.Device, defaultStream)
		if err != nil {
			return made, err
		}
		defer v.leave()
		return compile(b.library, source)
	}
	c, err := loadCompiler(compilerLibraries(b.lookup, source.Libraries))
	if err != nil {
		return made, err
	}
	architecture := source.Architecture
	if architecture == "" {
		major, err := b.attribute(d, AttributeMajor)
		if err != nil {
			return made, err
		}
		minor, err := b.attribute(d, AttributeMinor)
		if err != nil {
			return made, err
		}
		architecture = c.target(10*major + minor)
	}
	asText := !strings.HasPrefix(architecture, "sm_")
	if !asText && c.Code == 0 {
		return made, fmt.Errorf("%w: this NVRTC makes no code for %s, and text for compute_%s", errors.ErrUnsupported,
			architecture, architecture[3:])
	}
	options := append(source.Options[:len(source.Options):len(source.Options)], "--gpu-architecture="+architecture)
	return c.Compiler.Compile(source.Text, source.Name, nil, options, asText)
}
