package hip

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"hamr/backends"
	"hamr/backends/cuda"
	"hamr/backends/internal/dl"
	"hamr/backends/internal/rtc"
)

// compiler is HIP's compiler at run time. Its functions return a hiprtcResult, which is zero for success.
type compiler struct {
	CreateProgram  uintptr `dl:"hiprtcCreateProgram"`
	CompileProgram uintptr `dl:"hiprtcCompileProgram"`
	DestroyProgram uintptr `dl:"hiprtcDestroyProgram"`
	CodeSize       uintptr `dl:"hiprtcGetCodeSize"`
	Code           uintptr `dl:"hiprtcGetCode"`
	TextSize, Text uintptr
	LogSize        uintptr `dl:"hiprtcGetProgramLogSize"`
	Log            uintptr `dl:"hiprtcGetProgramLog"`
	ErrorString    uintptr `dl:"hiprtcGetErrorString,optional"`
}

// The compiler compares the fields.
var _ = rtc.EntryPoints(compiler{})

// compilers are its libraries from ROCm 7 on. Before, the runtime has it.
var compilers = []string{"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", "/opt/rocm/lib/libhiprtc.so"}

// To multiply and add in one step would round once where the host rounds twice.
var compilerOptions = []string{"-std=c++17", "-O3", "-ffp-contract=off"}

// compilerOf returns the compiler in a runtime, or else the first one that the loader finds.
func compilerOf(library dl.Library, more []string) (*rtc.Compiler, error) {
	c := new(compiler)
	if err := dl.Bind(library, c); err != nil {
		apart, missing := dl.Open(append(compilers[:len(compilers):len(compilers)], more...), "")
		if missing != nil {
			return nil, fmt.Errorf("%w; %w", err, missing)
		}
		if err := dl.Bind(apart, c); err != nil {
			return nil, err
		}
	}
	return &rtc.Compiler{EntryPoints: rtc.EntryPoints(*c), API: "hiprtc"}, nil
}

// compile returns the kernels in the form that the runtime loads, for the current device unless an option names
// another architecture.
func compile(library dl.Library, options ...string) ([]byte, error) {
	c, err := compilerOf(library, nil)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(cuda.KernelSources, "kernels/*.h")
	if err != nil {
		return nil, err
	}
	var files []rtc.Header
	for _, name := range append(names, "kernels/kernels.cu") {
		text, err := cuda.KernelSources.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, rtc.Header{Name: path.Base(name), Text: string(text)})
	}
	main := files[len(names)]
	made, err := c.Compile(main.Text, main.Name, files[:len(names)],
		append(compilerOptions[:len(compilerOptions):len(compilerOptions)], options...), false)
	if err != nil {
		return nil, errors.New(err.Error()) // its codes are not the runtime's
	}
	return made.Image, nil
}

// compileForUser compiles for the current device, unless an option or the architecture names another.
func compileForUser(library dl.Library, source backends.CodeSource) (made backends.Code, err error) {
	c, err := compilerOf(library, source.Libraries)
	if err != nil {
		return made, &backends.UnavailableError{Backend: "hiprtc",
			Tried: append(compilers[:len(compilers):len(compilers)], source.Libraries...), Reason: err.Error()}
	}
	options := source.Options
	if source.Architecture != "" {
		options = append(options[:len(options):len(options)], "--offload-arch="+source.Architecture)
	}
	return c.Compile(source.Text, source.Name, nil, options, false)
}
