package bridge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"unsafe"

	"hamr/backends"
	"hamr/gobuffer"
)

// kernels are the modules that Python has, and what was asked for of them. Numbers start elsewhere in every
// copy of the library, as those of accesses do.
var kernels = struct {
	mutex   sync.RWMutex
	last    uint64
	modules map[uint64]*openModule
	kernels map[uint64]*gobuffer.Kernel
}{last: uint64(rand.Uint32()) << 31, modules: map[uint64]*openModule{}, kernels: map[uint64]*gobuffer.Kernel{}}

type openModule struct {
	*gobuffer.Module
	numbers map[*gobuffer.Kernel]uint64
}

// OpenModule returns the number of a module of a backend's.
func OpenModule(backend string, image []byte) (number uint64, err error) {
	defer Guard(&err)
	m, err := Runtime.NewModule(backend, image)
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, refused("backend", fmt.Sprintf("%q", backend), "one that runs kernels which are brought as code: cuda, hip")
	}
	if err != nil {
		return 0, err
	}
	announceDevices()
	kernels.mutex.Lock()
	defer kernels.mutex.Unlock()
	kernels.last++
	kernels.modules[kernels.last] = &openModule{m, map[*gobuffer.Kernel]uint64{}}
	return kernels.last, nil
}

// CloseModule ends a module and its kernels. What has yet to run goes on.
func CloseModule(number uint64) (err error) {
	defer Guard(&err)
	kernels.mutex.Lock()
	m := kernels.modules[number]
	delete(kernels.modules, number)
	if m != nil {
		for _, kernel := range m.numbers {
			delete(kernels.kernels, kernel)
		}
	}
	kernels.mutex.Unlock()
	if m == nil {
		return fmt.Errorf("%w (module %#x)", gobuffer.ErrFreed, number)
	}
	return m.Close()
}

// Kernel is what C is told of a kernel.
type Kernel struct {
	Number, Handle uint64
	backends.FunctionFacts
}

// GetKernel returns a kernel of a module on a device; -1 stands for the current one.
func GetKernel(module uint64, name string, device int) (k Kernel, err error) {
	defer Guard(&err)
	kernels.mutex.RLock()
	m := kernels.modules[module]
	kernels.mutex.RUnlock()
	if m == nil {
		return k, fmt.Errorf("%w (module %#x)", gobuffer.ErrFreed, module)
	}
	found, err := m.Kernel(device, name)
	if err != nil {
		return k, err
	}
	kernels.mutex.Lock()
	defer kernels.mutex.Unlock()
	if kernels.modules[module] != m {
		return k, fmt.Errorf("%w (module %#x)", gobuffer.ErrFreed, module)
	}
	if m.numbers[found] == 0 {
		kernels.last++
		m.numbers[found] = kernels.last
		kernels.kernels[kernels.last] = found
	}
	return Kernel{m.numbers[found], uint64(found.Handle()), found.Facts()}, nil
}

func kernelOf(number uint64) (*gobuffer.Kernel, error) {
	kernels.mutex.RLock()
	defer kernels.mutex.RUnlock()
	if k := kernels.kernels[number]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("%w (kernel %#x)", gobuffer.ErrFreed, number)
}

// Argument is hamr_argument of hamr/functions.h, field by field; package cabi asserts that the layouts agree.
type Argument struct {
	Array *Descriptor
	Value unsafe.Pointer
	Marks uint64
	Size  int32
	Reads int32
}

// Launch runs a kernel on a stream, which may end without Retire if mayEnd says so, and sets the Marks of arguments
// that are arrays.
func Launch(kernel uint64, shape backends.LaunchShape, s backends.Stream, mayEnd bool,
	arguments []Argument) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	k, err := kernelOf(kernel)
	if err != nil {
		return err
	}
	given := make([]gobuffer.Argument, len(arguments))
	defer func() {
		for _, g := range given {
			if g.Array != nil {
				g.Array.Close()
			}
		}
	}()
	for i := range arguments {
		from := &arguments[i]
		given[i] = gobuffer.Argument{Reads: from.Reads != 0, Value: from.Value, Size: int(from.Size)}
		if from.Array != nil {
			if given[i].Array, err = from.Array.borrowed(); err != nil {
				return err
			}
		}
	}
	if err := k.Launch(shape, gobuffer.LaunchStream{Stream: s, MayEnd: mayEnd}, given); err != nil {
		return err
	}
	for i := range arguments {
		if a := given[i].Array; a != nil {
			arguments[i].Marks = k.Covers(a, s)
		}
	}
	return nil
}

// Launched tells of launches on a stream that C makes by itself.
func Launched(kernel uint64, s backends.Stream) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	k, err := kernelOf(kernel)
	if err != nil {
		return err
	}
	return k.Launched(s)
}

// Compile compiles text for a device of a backend; -1 stands for the current one.
func Compile(backend string, source backends.CodeSource) (backends.Code, error) {
	made, err := with(backend, source.Device, func(c backends.Compiler, device int) (backends.Code, error) {
		source.Device = device
		return c.Compile(source)
	})
	made.Log = strings.ToValidUTF8(made.Log, "\ufffd")
	return made, err
}
