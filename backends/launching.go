package backends

import (
	"errors"
	"unsafe"
)

// Module is a runtime's handle of kernels that were loaded into a device.
type Module uintptr

// Function is a runtime's handle of a kernel of a Module's. It ends with that.
type Function uintptr

// ErrNoFunction says that a module has no kernel of a name.
var ErrNoFunction = errors.New("the module has no such kernel")

// Launcher is implemented by backends that run kernels which users bring as code for the device.
type Launcher interface {
	// LoadModule loads code into a device: text or a binary, as the vendor's compilers make it. Where the runtime
	// compiles it, the error's Message has the compiler's words. The image need not outlive the call.
	LoadModule(device int, image []byte) (Module, error)
	// UnloadModule ends a module. None of its kernels may be running or be part of a graph.
	UnloadModule(device int, m Module) error
	// Function returns the kernel of that name; the error is ErrNoFunction.
	Function(device int, m Module, name string) (Function, error)
	// FunctionFacts returns what is known of a kernel.
	FunctionFacts(device int, f Function) (FunctionFacts, error)
	// AllowShared lets launches of a kernel ask for up to some bytes of shared memory, more than
	// FunctionFacts.Shared and no more than its MostShared.
	AllowShared(device int, f Function, bytes int) error
	// LaunchFunction runs a kernel in stream order. The stream must be of the context that the backend works in on the
	// device, otherwise the error is errors.ErrUnsupported. arguments points to the addresses of the values, one for
	// each parameter of the kernel. The values are read before it returns.
	LaunchFunction(device int, stream Stream, f Function, shape LaunchShape, arguments unsafe.Pointer) error
	// Capturing reports whether work on a stream is captured into a graph.
	Capturing(device int, stream Stream) (bool, error)
}

// LaunchShape says how many threads run a kernel.
type LaunchShape struct {
	Grid, Block [3]uint32 // blocks, and threads of each, along x, y and z
	Shared      uint32    // bytes of shared memory of each block, besides those that the kernel names
}

// FunctionFacts are what is known of a kernel on a device. Zero stands for unknown.
type FunctionFacts struct {
	Parameters      []int     // bytes of each
	KnowsParameters bool      // else Parameters is nil though there may be some
	Threads         int       // that a block may have, by the registers that each needs
	MostBlock       [3]uint32 // threads of a block along each axis
	MostGrid        [3]uint32 // blocks
	Static          int       // bytes of shared memory that the kernel names
	Shared          int       // bytes besides that a launch may ask for as it is
	MostShared      int       // and after AllowShared
	Constant, Local int       // bytes of constant memory, and of each thread's own memory
	Registers       int       // of each thread
}

// CodeSource is the text of kernels for a Compiler.
type CodeSource struct {
	Text, Name   string
	Options      []string
	Architecture string   // as "sm_90" or "gfx90a"; "" is the device's
	Device       int      // that the code is for
	Libraries    []string // compilers to look for after those that the loader finds
}

// Code is what a Compiler makes of a CodeSource.
type Code struct {
	Image []byte // what Launcher.LoadModule takes
	Text  []byte // the same as PTX, beside an image that is a binary, where the compiler gives both
	Log   string // what the compiler had to say
}

// Compiler is implemented by backends whose vendor has a compiler of kernels that a program can load.
type Compiler interface {
	// Compile compiles. The error is an *UnavailableError where there is no such compiler, and a *DeviceError with the
	// compiler's Message for text that does not compile.
	Compile(source CodeSource) (Code, error)
}
