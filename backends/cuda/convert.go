package cuda

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"hamr/backends"
)

// KernelsSetting set to "0" makes Convert unsupported, and fills go without
// kernels: nothing is compiled for the device then.
const KernelsSetting = "HAMR_CUDA_KERNELS"

// kernelText is the kernels, for the driver to compile.
//
//go:embed kernels/kernels.ptx
var kernelText []byte

// entry begins each kernel in kernelText.
const entry = ".visible .entry "

// textOf is the text of one kernel, with what comes before all of them. Where the driver's cache is empty, as in a new
// container, all take 0.7 s to compile on an H200, hamr_copy 0.04 s and hamr_convert 0.18 s (2026-11-28).
func textOf(name string) []byte {
	head, _, _ := bytes.Cut(kernelText, []byte(entry))
	_, kernel, _ := bytes.Cut(kernelText, []byte(entry+name+"("))
	kernel, _, _ = bytes.Cut(kernel, []byte(entry))
	return slices.Concat(head, []byte(entry+name+"("), kernel)
}

// KernelSources are the kernels as C++, for compilers at run time: kernels/kernels.cu and its headers.
//
//go:embed kernels/kernels.cu kernels/*.h
var KernelSources embed.FS

// Convert is backends.Converter's. It is errors.ErrUnsupported for more than eight
// dimensions after merging, for elements without a rule, for pageable memory, where
// no device is named, and where the driver does not take the kernels.
func (b *copyFloor) Convert(dst, src backends.Strided, stream backends.Stream) error {
	device, steps, functions, copied, err := b.prepare(dst, src)
	if err != nil {
		return err
	}
	if copied.bytes > 0 {
		dst.Address, src.Address = copied.dst, copied.src
		_, err := b.Copy(dst.Region, src.Region, copied.bytes, stream)
		return err
	}
	for i, s := range steps {
		_, argument, _ := s.kernel()
		if err := b.launchBlocks(device, stream, functions[i], s.blocks, argument); err != nil {
			return err
		}
	}
	return nil
}

// Converts is backends.Converter's.
func (b *copyFloor) Converts(dst, src backends.Strided, stream backends.Stream) bool {
	device, steps, _, _, err := b.prepare(dst, src)
	return err == nil && (len(steps) == 0 || b.runsKernels(device, stream))
}

// prepare plans a Convert, and names the device whose kernels do it. It enqueues nothing.
func (b *copyFloor) prepare(dst, src backends.Strided) (device int, steps []step, functions []uintptr, copied plain,
	err error) {
	device, ok := converting(dst.Region, src.Region)
	if !ok || b.withoutKernels {
		return 0, nil, nil, plain{}, errors.ErrUnsupported
	}
	if steps, copied, err = plan(dst, src, mostInLaunch); err != nil {
		return 0, nil, nil, plain{}, err
	}
	if len(steps) > 0 {
		//mutate:skip a kernel converts host memory that its device does not reach
		if err := b.reachEnds(device, dst, src); err != nil {
			return 0, nil, nil, plain{}, err
		}
	}
	functions = make([]uintptr, len(steps))
	for i, s := range steps {
		name, _, _ := s.kernel()
		if functions[i], err = b.kernel(device, name); err != nil {
			return 0, nil, nil, plain{}, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
	}
	return device, steps, functions, copied, nil
}

// converting chooses the device, as Converter says: the target's, or the source's
// where the host reaches the target.
func converting(dst, src backends.Region) (device int, ok bool) {
	if dst.Allocator.Kind() == backends.Pageable || src.Allocator.Kind() == backends.Pageable {
		return 0, false
	}
	for _, r := range []backends.Region{dst, src} {
		if r.Allocator.Kind() == backends.DeviceOnly && r.Device >= 0 {
			return r.Device, true
		}
	}
	device = max(dst.Device, src.Device)
	if src.Allocator.Kind() == backends.Managed && src.Device >= 0 {
		device = src.Device
	}
	return device, device >= 0
}

// fillByKernel repeats pattern, of 1 to 16 bytes, count times from dst on, in stream order. dst is memory of its
// device, or managed. Where kernels do not run it enqueues nothing and returns errors.ErrUnsupported.
func (b *copyFloor) fillByKernel(dst backends.Region, pattern []byte, count int, stream backends.Stream) error {
	if b.withoutKernels {
		return errors.ErrUnsupported
	}
	function, err := b.kernel(dst.Device, fillKernel)
	if err != nil {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	argument, blocks := planFill(dst.Address, pattern, count)
	return b.launchBlocks(dst.Device, stream, function, blocks, unsafe.Pointer(argument))
}
