package backendtest

import (
	"bytes"
	_ "embed"
	"slices"
	"time"
	"unsafe"

	"hamr/backends"
)

// Kernels is a module of PTX with conformance_fill(target, count uint32, value uint8) and
// conformance_copy(target, source, count uint32), for one byte each thread. A Fake runs those.
//
//go:embed kernels.ptx
var Kernels []byte

// SharedForAll and MostShared are how much shared memory each of a Fake's kernels may ask for, at first
// and after AllowShared.
const (
	SharedForAll = 48 << 10
	MostShared   = 96 << 10
)

// fakeKernel is one of Kernels.
type fakeKernel struct {
	name  string
	sizes []int
	run   func(f *fakeMemory, threads int, values [][]byte)
}

var fakeKernels = []fakeKernel{
	{"conformance_fill", []int{8, 4, 1}, func(f *fakeMemory, threads int, v [][]byte) {
		count := min(threads, int(*(*uint32)(unsafe.Pointer(&v[1][0]))))
		f.touch(v[0], count, func(target []byte) {
			for i := range target {
				target[i] = v[2][0]
			}
		})
	}},
	{"conformance_copy", []int{8, 8, 4}, func(f *fakeMemory, threads int, v [][]byte) {
		count := min(threads, int(*(*uint32)(unsafe.Pointer(&v[2][0]))))
		f.touch(v[0], count, func(target []byte) {
			f.touch(v[1], count, func(source []byte) { copy(target, source) })
		})
	}},
}

// touch is what a kernel does with the memory at an address.
func (f *fakeMemory) touch(address []byte, size int, do func(memory []byte)) {
	at := backends.Address(*(*uintptr)(unsafe.Pointer(&address[0])))
	if b := f.find(at); b != nil {
		f.onBlock(b, "kernel", func() { do(f.bytesAt(at, size)) })
		return
	}
	_ = f.violate("LaunchFunction", "a kernel uses unknown memory at %#x", at)
}

// fakeModule is a module that was loaded, and what has yet to run of it.
type fakeModule struct {
	device    int
	pending   int
	functions map[backends.Function]*fakeFunction
}

type fakeFunction struct {
	*fakeKernel
	module *fakeModule
	shared int
}

// fakeModules are those of a Fake, by handle.
type fakeModules map[backends.Module]*fakeModule

// LoadModule takes Kernels.
func (f *fakeMemory) LoadModule(device int, image []byte) (backends.Module, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("LoadModule", "device %d, %d bytes", device, len(image)); err != nil {
		return 0, err
	}
	if err := f.checkDevice("LoadModule", device); err != nil {
		return 0, err
	}
	if !bytes.Equal(image, Kernels) {
		return 0, &backends.DeviceError{API: f.Name(), Call: "LoadModule", Name: "FAKE_INVALID_IMAGE", Code: 1,
			Message: "line 1: no kernels"}
	}
	m := backends.Module(f.newHandle())
	if f.modules == nil {
		f.modules = fakeModules{}
	}
	f.modules[m] = &fakeModule{device: device, functions: map[backends.Function]*fakeFunction{}}
	return m, nil
}

// UnloadModule is a violation while the module has work to do.
func (f *fakeMemory) UnloadModule(device int, m backends.Module) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("UnloadModule", "device %d, module %#x", device, m); err != nil {
		return err
	}
	module := f.modules[m]
	if module == nil || module.device != device {
		return f.violate("UnloadModule", "there is no module %#x on device %d", m, device)
	}
	if module.pending > 0 {
		_ = f.violate("UnloadModule", "%d of its kernels have yet to run", module.pending)
	}
	delete(f.modules, m)
	return nil
}

// Function finds a kernel of a module's.
func (f *fakeMemory) Function(device int, m backends.Module, name string) (backends.Function, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Function", "device %d, module %#x, %q", device, m, name); err != nil {
		return 0, err
	}
	module := f.modules[m]
	if module == nil || module.device != device {
		return 0, f.violate("Function", "there is no module %#x on device %d", m, device)
	}
	for i := range fakeKernels {
		if fakeKernels[i].name == name {
			handle := backends.Function(f.newHandle())
			module.functions[handle] = &fakeFunction{&fakeKernels[i], module, SharedForAll}
			return handle, nil
		}
	}
	return 0, backends.ErrNoFunction
}

func (f *fakeMemory) function(call string, device int, handle backends.Function) (*fakeFunction, error) {
	for _, m := range f.modules {
		if function := m.functions[handle]; function != nil && m.device == device {
			return function, nil
		}
	}
	return nil, f.violate(call, "there is no function %#x on device %d", handle, device)
}

// FunctionFacts are those of a small device.
func (f *fakeMemory) FunctionFacts(device int, handle backends.Function) (facts backends.FunctionFacts, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("FunctionFacts", "device %d, function %#x", device, handle); err != nil {
		return facts, err
	}
	function, err := f.function("FunctionFacts", device, handle)
	if err != nil {
		return facts, err
	}
	return backends.FunctionFacts{Parameters: slices.Clone(function.sizes), KnowsParameters: true, Threads: 256,
		MostBlock: [3]uint32{256, 256, 64}, MostGrid: [3]uint32{1 << 30, 1 << 16, 1 << 16},
		Shared: function.shared, MostShared: MostShared, Registers: 8}, nil
}

// AllowShared raises what launches may ask for.
func (f *fakeMemory) AllowShared(device int, handle backends.Function, bytes int) error {
	time.Sleep(10 * time.Microsecond) // others may come first, as on their way into a driver
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("AllowShared", "device %d, function %#x, %d bytes", device, handle, bytes); err != nil {
		return err
	}
	function, err := f.function("AllowShared", device, handle)
	if err != nil {
		return err
	}
	if bytes > MostShared {
		return f.violate("AllowShared", "%d bytes, and %d are there", bytes, MostShared)
	}
	function.shared = bytes
	return nil
}

// LaunchFunction queues a kernel, whose arguments it reads at once.
func (f *fakeMemory) LaunchFunction(device int, s backends.Stream, handle backends.Function, shape backends.LaunchShape,
	arguments unsafe.Pointer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("LaunchFunction", "device %d, function %#x, %v, stream %#x", device, handle, shape, s); err != nil {
		return err
	}
	function, err := f.function("LaunchFunction", device, handle)
	if err != nil {
		return err
	}
	if int(shape.Shared) > function.shared {
		return f.violate("LaunchFunction", "%d bytes of shared memory, and %d are allowed", shape.Shared, function.shared)
	}
	threads := 1
	for axis := range 3 {
		if shape.Grid[axis] == 0 || shape.Block[axis] == 0 {
			return f.violate("LaunchFunction", "no threads: %v", shape)
		}
		threads *= int(shape.Grid[axis] * shape.Block[axis])
	}
	stream, err := f.stream("LaunchFunction", device, s)
	if err != nil {
		return err
	}
	var values [][]byte
	for i, at := range unsafe.Slice((*unsafe.Pointer)(arguments), len(function.sizes)) {
		values = append(values, bytes.Clone(unsafe.Slice((*byte)(at), function.sizes[i])))
	}
	function.module.pending++
	f.enqueue(stream, task{run: func() {
		function.module.pending--
		function.run(f, threads, values)
	}})
	return nil
}

// Capturing is false: there are no graphs.
func (f *fakeMemory) Capturing(int, backends.Stream) (bool, error) { return false, nil }

// LiveModules is how many modules were loaded and not unloaded.
func (f *fakeMemory) LiveModules() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.modules)
}
