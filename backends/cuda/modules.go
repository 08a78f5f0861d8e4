package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"hamr/backends"
)

// Options of the driver's compiler of PTX.
const (
	jitErrorLog     = 5 // where its errors are written
	jitErrorLogSize = 6
	jitLogRoom      = 16 << 10
)

// Attributes of functions; HIP's have the same numbers.
const (
	functionThreads       = 0
	functionStaticShared  = 1
	functionConstant      = 2
	functionLocal         = 3
	functionRegisters     = 4
	functionDynamicShared = 8
)

// noSuchName is the driver's code for a name that a module does not have.
const noSuchName = 500

// LoadModule loads code into the device's primary context: PTX, which the driver compiles, a cubin or a fatbin. For
// HIP it is a code object.
func (b *contextFloor) LoadModule(device int, image []byte) (backends.Module, error) {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	// The driver takes text that ends with a zero.
	image = append(image[:len(image):len(image)], 0)
	if b.driver.ModuleLoadDataEx == 0 {
		err := b.callWithPointers(b.driver.ModuleLoadData, v.slot(0), uintptr(unsafe.Pointer(unsafe.SliceData(image))))
		return backends.Module(v.out[0]), err
	}
	log := make([]byte, jitLogRoom)
	options := &struct {
		names  [2]int32
		values [2]uintptr // what is no address is itself in place of one
	}{[2]int32{jitErrorLog, jitErrorLogSize}, [2]uintptr{uintptr(unsafe.Pointer(unsafe.SliceData(log))), jitLogRoom}}
	err = b.callWithPointers(b.driver.ModuleLoadDataEx, v.slot(0), uintptr(unsafe.Pointer(unsafe.SliceData(image))),
		uintptr(len(options.names)),
		uintptr(unsafe.Pointer(&options.names)), uintptr(unsafe.Pointer(&options.values)))
	runtime.KeepAlive(log)
	runtime.KeepAlive(options)
	var failed *backends.DeviceError
	if text := textIn(log); text != "" && errors.As(err, &failed) {
		failed.Message = strings.TrimPrefix(failed.Message+": "+text, ": ")
	}
	return backends.Module(v.out[0]), err
}

// textIn is what stands before the first zero.
func textIn(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	return strings.TrimSpace(string(text))
}

// UnloadModule ends a module of LoadModule's.
func (b *contextFloor) UnloadModule(device int, m backends.Module) error {
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(b.driver.ModuleUnload, uintptr(m))
}

// Function returns the kernel of that name.
func (b *contextFloor) Function(device int, m backends.Module, name string) (backends.Function, error) {
	if strings.Contains(name, "\x00") {
		return 0, backends.ErrNoFunction
	}
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return 0, err
	}
	defer v.leave()
	text := append([]byte(name), 0)
	err = b.callWithPointers(b.driver.ModuleGetFunction, v.slot(0), uintptr(m),
		uintptr(unsafe.Pointer(unsafe.SliceData(text))))
	var failed *backends.DeviceError
	if errors.As(err, &failed) && failed.Code == noSuchName {
		return 0, backends.ErrNoFunction
	}
	return backends.Function(v.out[0]), err
}

// FunctionFacts asks the driver, which knows the parameters from 12.4 on.
func (b *contextFloor) FunctionFacts(number int, f backends.Function) (facts backends.FunctionFacts, err error) {
	d, err := b.device(number)
	if err != nil {
		return facts, err
	}
	v, err := b.enter(number, defaultStream)
	if err != nil {
		return facts, err
	}
	defer v.leave()
	if facts.Parameters, facts.KnowsParameters, err = v.parameters(f); err != nil {
		return facts, err
	}
	for attribute, into := range map[int]*int{functionThreads: &facts.Threads, functionStaticShared: &facts.Static,
		functionConstant: &facts.Constant, functionLocal: &facts.Local, functionRegisters: &facts.Registers,
		functionDynamicShared: &facts.Shared} {
		if err := b.call(b.driver.FuncGetAttribute, v.slot(0), uintptr(attribute), uintptr(f)); err != nil {
			return facts, err
		}
		*into = int(int32(v.out[0]))
	}
	for axis := range 3 {
		for first, into := range map[int]*[3]uint32{AttributeMaxBlockX: &facts.MostBlock,
			AttributeMaxGridX: &facts.MostGrid} {
			most, err := b.attribute(d, first+axis)
			if err != nil {
				return facts, err
			}
			into[axis] = uint32(max(most, 0))
		}
	}
	most := AttributeMaxSharedBytesOptIn
	if b.driver.FuncSetAttribute == 0 {
		most = AttributeSharedBytes
	}
	room, err := b.attribute(d, most)
	facts.MostShared = max(room-facts.Static, facts.Shared)
	return facts, err
}

// parameters asks for one size after the other, until there is none.
func (v *visit) parameters(f backends.Function) (sizes []int, known bool, err error) {
	b := v.b
	if b.driver.FuncGetParamInfo == 0 {
		return nil, false, nil
	}
	for {
		switch code := b.try(b.driver.FuncGetParamInfo, uintptr(f), uintptr(len(sizes)), v.slot(0), v.slot(1)); code {
		case success:
			sizes = append(sizes, int(v.out[1]))
		case invalidValue:
			return sizes, true, nil
		case notSupported:
			return nil, false, nil
		default:
			return nil, false, b.finish(b.driver.FuncGetParamInfo, code)
		}
	}
}

// AllowShared raises how much shared memory launches of a kernel may ask for.
func (b *contextFloor) AllowShared(device int, f backends.Function, bytes int) error {
	if b.driver.FuncSetAttribute == 0 {
		return fmt.Errorf("%w: more shared memory for a kernel of %s", errors.ErrUnsupported, b.Name())
	}
	v, err := b.enter(device, defaultStream)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(b.driver.FuncSetAttribute, uintptr(f), functionDynamicShared, uintptr(bytes))
}

// LaunchFunction enqueues a kernel. arguments need not be Go's memory; what is must be pinned, or on the heap and
// kept by the caller.
func (b *contextFloor) LaunchFunction(device int, stream backends.Stream, f backends.Function,
	shape backends.LaunchShape, arguments unsafe.Pointer) error {
	v, err := b.enterHome(device, stream)
	if err != nil {
		return err
	}
	defer v.leave()
	g, t := shape.Grid, shape.Block
	return b.call(b.driver.LaunchKernel, uintptr(f), uintptr(g[0]), uintptr(g[1]), uintptr(g[2]), uintptr(t[0]),
		uintptr(t[1]), uintptr(t[2]),
		uintptr(shape.Shared), b.native(stream), uintptr(arguments), 0)
}

// Capturing asks the driver. The default streams are never captured.
func (b *contextFloor) Capturing(device int, stream backends.Stream) (bool, error) {
	if stream <= perThreadStream || b.driver.StreamIsCapturing == 0 {
		return false, nil
	}
	v, err := b.enter(device, stream)
	if err != nil {
		return false, err
	}
	defer v.leave()
	err = b.call(b.driver.StreamIsCapturing, b.native(stream), v.slot(0))
	return int32(v.out[0]) != 0, err
}
