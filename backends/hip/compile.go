package hip

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"unsafe"

	"hamr/backends/cuda"
	"hamr/backends/internal/dl"
)

// compiler is HIP's compiler at run time. Its functions return a hiprtcResult, which is zero for success.
type compiler struct {
	CreateProgram  uintptr `dl:"hiprtcCreateProgram"`
	CompileProgram uintptr `dl:"hiprtcCompileProgram"`
	DestroyProgram uintptr `dl:"hiprtcDestroyProgram"`
	GetCodeSize    uintptr `dl:"hiprtcGetCodeSize"`
	GetCode        uintptr `dl:"hiprtcGetCode"`
	GetLogSize     uintptr `dl:"hiprtcGetProgramLogSize"`
	GetLog         uintptr `dl:"hiprtcGetProgramLog"`
}

// compilers are where it is from ROCm 7 on; before, the runtime has it.
var compilers = []string{"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so", "/opt/rocm/lib/libhiprtc.so"}

// Multiplying and adding in one step would round once where the host rounds twice.
var compilerOptions = []string{"-std=c++17", "-O3", "-ffp-contract=off"}

// compile returns the kernels as the runtime loads them: for the current device, unless an option names
// another architecture.
func compile(library dl.Library, options ...string) ([]byte, error) {
	c := new(compiler)
	if err := dl.Bind(library, c); err != nil {
		apart, missing := dl.Open(compilers, "")
		if missing != nil {
			return nil, fmt.Errorf("%w; %w", err, missing)
		}
		if err := dl.Bind(apart, c); err != nil {
			return nil, err
		}
	}
	return c.compile(append(compilerOptions[:len(compilerOptions):len(compilerOptions)], options...))
}

func (c *compiler) compile(options []string) ([]byte, error) {
	headers, err := fs.Glob(cuda.KernelSources, "kernels/*.h")
	if err != nil {
		return nil, err
	}
	var texts, names []string
	for _, name := range append(headers, "kernels/kernels.cu") {
		text, err := cuda.KernelSources.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts, names = append(texts, string(text)), append(names, path.Base(name))
	}
	last := len(headers)
	source, given := newStrings(texts[last], names[last]), newStrings(options...)
	included, called := newStrings(texts[:last]...), newStrings(names[:last]...)
	defer runtime.KeepAlive([]*cStrings{source, included, called, given})
	answer := new(uintptr)
	if code := int32(dl.Call(c.CreateProgram, uintptr(unsafe.Pointer(answer)), source.list[0], source.list[1], uintptr(last),
		included.address(), called.address())); code != 0 {
		return nil, fmt.Errorf("hiprtcCreateProgram returned %d", code)
	}
	program := *answer
	defer func() {
		*answer = program
		dl.Call(c.DestroyProgram, uintptr(unsafe.Pointer(answer)))
	}()
	if code := int32(dl.Call(c.CompileProgram, program, uintptr(len(options)), given.address())); code != 0 {
		log, _ := read(program, c.GetLogSize, c.GetLog)
		return nil, fmt.Errorf("hiprtcCompileProgram returned %d: %s", code, log)
	}
	return read(program, c.GetCodeSize, c.GetCode)
}

// read returns what one function tells the size of and another one writes.
func read(program, size, get uintptr) ([]byte, error) {
	bytes := new(uintptr)
	if code := int32(dl.Call(size, program, uintptr(unsafe.Pointer(bytes)))); code != 0 || *bytes == 0 {
		return nil, fmt.Errorf("hiprtc returned %d for a size, which is %d", code, *bytes)
	}
	into := make([]byte, *bytes)
	if code := int32(dl.Call(get, program, uintptr(unsafe.Pointer(unsafe.SliceData(into))))); code != 0 {
		return nil, fmt.Errorf("hiprtc returned %d", code)
	}
	return into, nil
}

// cStrings are strings that end with a zero, and the list of their addresses.
type cStrings struct {
	texts [][]byte
	list  []uintptr
}

func newStrings(texts ...string) *cStrings {
	s := new(cStrings)
	for _, text := range texts {
		bytes := append([]byte(text), 0)
		s.texts = append(s.texts, bytes)
		s.list = append(s.list, uintptr(unsafe.Pointer(unsafe.SliceData(bytes))))
	}
	return s
}

func (s *cStrings) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s.list))) }
