package gobuffer

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/gobuffer/internal/modules"
	"hamr/gobuffer/internal/order"
)

// Kernel is a kernel of a Module's on one device. It is safe for concurrent use.
type Kernel struct {
	module *Module
	on     *modules.Loaded
	handle backends.Function
	name   string
	facts  backends.FunctionFacts
	shared atomic.Int64 // bytes of shared memory that launches may ask for
	asking sync.Mutex   // held while the runtime is told of more, since what it is told last counts
}

// Argument is one of a kernel's: where an Array's elements are, or the bytes of a value.
type Argument struct {
	Array *Array // or nil
	Reads bool   // the kernel writes none of its elements
	Value unsafe.Pointer
	Size  int // bytes at Value
}

// Facts returns what is known of the kernel.
func (k *Kernel) Facts() backends.FunctionFacts {
	if k.check() != nil {
		return backends.FunctionFacts{}
	}
	return k.facts
}

// Handle returns the runtime's own handle, as a CUfunction. It ends with the module.
func (k *Kernel) Handle() backends.Function {
	if k.check() != nil {
		return 0
	}
	return k.handle
}

// SharedAllowed returns the most bytes of shared memory that a launch may ask for before the runtime has to be told.
func (k *Kernel) SharedAllowed() int {
	if k.check() != nil {
		return 0
	}
	return int(k.shared.Load())
}

func (k *Kernel) check() error {
	if k == nil || k.module == nil {
		return errNoKernel
	}
	return nil
}

// frame is what a launch hands to the runtime.
type frame struct {
	pointers  []unsafe.Pointer
	addresses []backends.Address
	before    []order.Works
}

var frames = sync.Pool{New: func() any { return new(frame) }}

// unknownParameters is how many arguments a kernel gets whose parameters nobody knows. Those that were not named are
// zeros, instead of whatever lies behind the list.
const unknownParameters = 256

var zeros = new([64]byte)

// LaunchStream is the stream of a launch.
type LaunchStream struct {
	Stream backends.Stream
	// MayEnd says that it may end before the module is closed without Runtime.ForgetStream being told.
	MayEnd bool
}

// Launch runs the kernel on a stream of its device. It runs after all work on the elements of its arguments, and
// whoever uses or frees them later comes after it. Values are read before Launch returns. Each array must be one that
// code on the device uses in place. It must not be read-only unless the kernel only reads it. A wrong argument is an
// *ArgumentError that names it, and then nothing was enqueued.
func (k *Kernel) Launch(shape backends.LaunchShape, on LaunchStream, arguments []Argument) error {
	if err := k.check(); err != nil {
		return err
	}
	if err := errors.Join(k.checkShape(shape), k.checkArguments(arguments)); err != nil {
		return err
	}
	if !k.on.Begin() {
		return errModuleClosed
	}
	defer k.on.End()
	if int64(shape.Shared) > k.shared.Load() {
		if err := k.allowShared(int64(shape.Shared)); err != nil {
			return err
		}
	}
	w, err := k.workOn(on.Stream)
	if err != nil {
		return err
	}
	//mutate:replace memory is paused while a kernel is being launched on it
	//mutate:with k.module.runtime.hold(arguments) => func() {}, error(nil)
	release, err := k.module.runtime.hold(arguments)
	if err != nil {
		return err
	}
	defer release()
	f := frames.Get().(*frame)
	defer f.end()
	return k.launch(f, w, on.MayEnd, shape, arguments)
}

func (k *Kernel) allowShared(bytes int64) error {
	k.asking.Lock()
	defer k.asking.Unlock()
	if bytes <= k.shared.Load() {
		return nil
	}
	err := k.module.launcher.AllowShared(k.on.Device, k.handle, int(bytes))
	if err == nil {
		k.shared.Store(bytes)
	}
	return err
}

// Launched says that the caller itself launches by Handle on a stream, from now on: the module is not unloaded before
// these launches are over. Once is enough for a stream as long as that exists.
func (k *Kernel) Launched(stream backends.Stream) error {
	if err := k.check(); err != nil {
		return err
	}
	w, err := k.workOn(stream)
	if err != nil {
		return err
	}
	k.on.Launched(w)
	return nil
}

// Covers returns the Marks of a's memory if the stream, of the kernel's device, holds all work that is recorded of it.
// Until the Marks change, a launch there comes after that work. Otherwise, and if nothing is recorded, it is zero.
func (k *Kernel) Covers(a *Array, stream backends.Stream) uint64 {
	if k.check() != nil || !a.live() || a.memory == nil || k.module.streams == nil {
		return 0
	}
	s, err := k.module.streams.Resolve(k.on.Device, stream)
	if err != nil {
		return 0
	}
	return a.memory.uses.MarksOn(k.module.backend, k.on.Device, s)
}

// workOn stands for the launch on a stream of the kernel's device.
func (k *Kernel) workOn(stream backends.Stream) (*order.Work, error) {
	m := k.module
	w := &order.Work{Backend: m.backend, Streams: m.streams, Device: k.on.Device, Stream: stream}
	if m.streams == nil {
		return w, nil
	}
	if stream != 0 {
		device, err := m.streams.StreamDevice(stream)
		if err != nil {
			return nil, err
		}
		if device >= 0 && device != k.on.Device {
			return nil, valueError("stream", fmt.Sprintf("%#x of device %d", uintptr(stream), device),
				fmt.Sprintf("a stream of device %d, where the arguments of %s are", k.on.Device, k.name))
		}
	}
	var err error
	w.Stream, err = m.streams.Resolve(k.on.Device, stream)
	return w, err
}

// launch enqueues the kernel on w's stream, and records it.
func (k *Kernel) launch(
	f *frame, w *order.Work, mayEnd bool, shape backends.LaunchShape, arguments []Argument,
) (err error) {
	defer func() {
		for _, before := range f.before {
			err = errors.Join(err, before.LetGo())
		}
	}()
	captured, err := k.module.launcher.Capturing(k.on.Device, w.Stream)
	if err != nil {
		return err
	}
	follow := w.Follow
	if captured {
		k.on.Captured()
		follow = func(before *order.Work) error {
			if before.StandsFor(w) {
				return nil // captured, too
			}
			return notPending(before)
		}
	}
	if err := f.follow(w, arguments, follow); err != nil {
		return err
	}
	f.point(arguments, k.facts.KnowsParameters)
	pointers := unsafe.Pointer(unsafe.SliceData(f.pointers))
	err = k.module.launcher.LaunchFunction(k.on.Device, w.Stream, k.handle, shape, pointers)
	runtime.KeepAlive(arguments)
	if errors.Is(err, errors.ErrUnsupported) {
		return valueError("stream", fmt.Sprintf("%#x of another context", uintptr(w.Stream)),
			"a stream of the device's primary context")
	}
	if err != nil {
		return err
	}
	if k.module.runtime.tracing() {
		k.module.runtime.tracef("launch %s on %s device %d, grid %v, block %v, %d bytes shared, stream %#x", k.name,
			k.module.backend.Name(), k.on.Device,
			shape.Grid, shape.Block, shape.Shared, uintptr(w.Stream))
	}
	//mutate:never a module names another library's stream
	if mayEnd && !captured && w.Streams != nil {
		err = k.on.LaunchedByEvent(w)
	} else {
		k.on.Launched(w)
	}
	next := 0
	for _, argument := range arguments {
		a := argument.Array
		if a == nil || a.memory == nil {
			continue
		}
		//mutate:remove memory does not know of the kernels that use it
		err = errors.Join(err, a.all().mark(w, f.before[next]))
		next++
		if !argument.Reads {
			k.module.runtime.kept.changed(a.all())
		}
	}
	return err
}

// follow makes w's stream run after what is pending on the arguments and after their own streams, where other libraries
// may have work on them. It follows each once.
func (f *frame) follow(w *order.Work, arguments []Argument, by func(before *order.Work) error) error {
	var followed order.Works
	follow := func(before *order.Work) error {
		if before.Ticket == nil {
			//mutate:replace a kernel waits for one of the works on its arguments
			//mutate:with followed.Cover(before) => len(followed) > 0
			if before.HoldsAll(w) || followed.Cover(before) {
				return nil
			}
			followed = append(followed, before)
		}
		//mutate:skip a kernel does not wait for what is pending on its arguments
		return by(before)
	}
	for _, argument := range arguments {
		if argument.Array == nil || argument.Array.memory == nil {
			continue
		}
		p := argument.Array.all()
		pending := p.pending()
		f.before = append(f.before, pending)
		for _, before := range pending {
			if err := follow(before); err != nil {
				return err
			}
		}
		if !p.hasStream() {
			continue
		}
		own, err := p.work()
		if err == nil {
			err = follow(own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notPending is follow for a stream that is being captured into a graph. Such a stream cannot wait for anything outside
// the graph.
func notPending(before *order.Work) error {
	idle, err := before.Idle()
	if errors.Is(err, backends.ErrCapturing) || idle && err == nil {
		return nil
	}
	if err == nil {
		err = valueError("stream", "being captured into a graph",
			"one that is not, or buffers on which nothing is pending: synchronize() them before the capture")
	}
	return err
}

// point lists where the arguments are.
func (f *frame) point(arguments []Argument, known bool) {
	for range arguments { // first, since the list must not move
		f.addresses = append(f.addresses, 0)
	}
	for i, argument := range arguments {
		at := argument.Value
		if a := argument.Array; a != nil {
			if a.layout.Count() > 0 {
				f.addresses[i] = a.address
			}
			at = unsafe.Pointer(&f.addresses[i])
		}
		f.pointers = append(f.pointers, at)
	}
	for !known && len(f.pointers) < unknownParameters {
		f.pointers = append(f.pointers, unsafe.Pointer(zeros))
	}
}

func (f *frame) end() {
	clear(f.pointers)
	clear(f.before)
	f.pointers, f.addresses, f.before = f.pointers[:0], f.addresses[:0], f.before[:0]
	frames.Put(f)
}
