package cuda

import (
	"cmp"
	"errors"
	"unsafe"

	"hamr/backends"
)

// blocksOnMultiprocessor is how many blocks of a grid each multiprocessor gets at most: somewhat more than run at a
// time, so that all end together.
const blocksOnMultiprocessor = 32

// kernel returns the function of that name from the kernels. It is loaded into
// the device's primary context at its first use. A failure to load is remembered,
// unless it may pass: compiling again would take as long and fail again.
func (b *contextFloor) kernel(device int, name string) (uintptr, error) {
	d, err := b.device(device)
	if err != nil {
		return 0, err
	}
	k := &d.kernels
	k.mu.Lock()
	defer k.mu.Unlock()
	if function, ok := k.functions[name]; ok {
		return function, nil
	}
	if k.failure != nil {
		return 0, k.failure
	}
	context, err := b.primaryContext(device)
	if err != nil {
		return 0, err
	}
	v, err := b.enterContext(context)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	if k.functions == nil {
		k.functions, k.modules = map[string]uintptr{}, map[string]uintptr{}
	}
	module := cmp.Or(k.modules[""], k.modules[name])
	if module == 0 {
		if module, err = v.loadModule(k, name); err != nil {
			if !passes(err) {
				k.failure = err
			}
			return 0, err
		}
	}
	text := append([]byte(name), 0)
	if err := b.callWithPointers(b.driver.ModuleGetFunction, v.slot(0), module,
		uintptr(unsafe.Pointer(unsafe.SliceData(text)))); err != nil {
		return 0, err
	}
	k.functions[name] = uintptr(v.out[0])
	return k.functions[name], nil
}

// passes reports whether what failed may work the next time: memory was short, others
// hold the device, or some stream is being captured into a graph.
func passes(err error) bool {
	var failed *backends.DeviceError
	return errors.As(err, &failed) && (failed.Code == outOfMemory || failed.Code == deviceUnavailable ||
		failed.Code >= firstOfCapture && failed.Code <= lastOfCapture)
}

// loadModule loads the module that has a kernel. k.mu is held.
func (v *visit) loadModule(k *kernels, name string) (uintptr, error) {
	text, whole, err := v.b.dialect.Kernels(v.b.library, name)
	if err != nil {
		return 0, err
	}
	if len(text) == 0 {
		return 0, errors.ErrUnsupported
	}
	// The driver takes text that ends with a zero.
	text = append(text[:len(text):len(text)], 0)
	err = v.b.callWithPointers(v.b.driver.ModuleLoadData, v.slot(0), uintptr(unsafe.Pointer(unsafe.SliceData(text))))
	if err != nil {
		return 0, err
	}
	if whole {
		name = ""
	}
	k.modules[name] = uintptr(v.out[0])
	return k.modules[name], nil
}

// runsKernels reports whether launch takes a stream.
func (b *contextFloor) runsKernels(device int, stream backends.Stream) bool {
	home, err := b.primaryContext(device)
	if err != nil {
		return false
	}
	v := scratch()
	defer visits.Put(v)
	v.b = b
	context, err := v.contextOf(device, stream)
	return err == nil && context == home
}

// enterHome is enter for a stream of the device's primary context, which kernels belong to. For a stream of another
// context it returns errors.ErrUnsupported.
func (b *contextFloor) enterHome(device int, stream backends.Stream) (*visit, error) {
	home, err := b.primaryContext(device)
	if err != nil {
		return nil, err
	}
	v, err := b.enter(device, stream)
	if err != nil {
		return nil, err
	}
	if v.context != home {
		v.leave()
		return nil, errors.ErrUnsupported
	}
	return v, nil
}

// launch enqueues a kernel that takes one structure by value, which is read before
// launch returns: see enterHome.
func (b *contextFloor) launch(device int, stream backends.Stream, function uintptr, grid, block uint32,
	argument unsafe.Pointer) error {
	v, err := b.enterHome(device, stream)
	if err != nil {
		return err
	}
	defer v.leave()
	v.pointer[0] = argument
	return b.call(b.driver.LaunchKernel, function, uintptr(grid), 1, 1, uintptr(block), 1, 1, 0,
		b.native(stream), uintptr(unsafe.Pointer(&v.pointer)), 0)
}

func (b *contextFloor) launchBlocks(device int, stream backends.Stream, function uintptr, blocks int,
	argument unsafe.Pointer) error {
	d, err := b.device(device)
	if err != nil {
		return err
	}
	multiprocessors, err := b.attribute(d, AttributeMultiprocessors)
	if err != nil {
		return err
	}
	grid := min(blocks, blocksOnMultiprocessor*max(multiprocessors, 1))
	return b.launch(device, stream, function, uint32(grid), kernelThreads, argument)
}
