package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"hamr/backends"
)

// ManySetting says how a list of copies is enqueued that needs no staging, or no more of it: "kernel", by one kernel
// that copies them all; "batch", by the driver's function for that, where it has one; "single", one by one. The
// default is a kernel within a device, and across the bus to or from page-locked memory; else a batch.
const ManySetting = "HAMR_COPY_MANY"

type way int

const (
	byDefault way = iota
	byKernel
	byBatch
	bySingle
)

var waysByName = map[string]way{"": byDefault, "kernel": byKernel, "batch": byBatch, "single": bySingle}

// copyFloor is the floor of copies, fills and kernels.
type copyFloor struct {
	pausingFloor

	withoutKernels bool // see KernelsSetting
	manyBy         way  // see ManySetting
	grid           int  // see GridSetting; zero chooses
	failures       blockFailures
}

// run is bytes that lie side by side in two places.
type run struct {
	target, source backends.Address
	size           int
}

// largestRun is how many bytes of a run a kernel copies at most: the driver copies larger runs as fast.
const largestRun = 4 << 20

// copyRuns enqueues copies, of which none overlaps another's target. function is the driver's for
// one. Where one way is not there, another is taken.
func (b *copyFloor) copyRuns(v *visit, d *device, runs []run, stream backends.Stream, function uintptr, by way) error {
	if len(runs) > 1 {
		err := errors.ErrUnsupported
		switch by {
		case byKernel:
			err = b.copyByKernel(v, d, runs, stream, function, 0)
		case byBatch:
			err = v.copyByBatch(runs, stream)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	for _, r := range runs {
		if err := v.copyRun(r, stream, function); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) copyRun(r run, stream backends.Stream, function uintptr) error {
	if kind := v.b.dialect.CopyKind; kind != 0 && function == v.b.driver.MemcpyAsync {
		return v.b.call(function, uintptr(r.target), uintptr(r.source), uintptr(r.size), kind, v.b.native(stream))
	}
	return v.b.call(function, uintptr(r.target), uintptr(r.source), uintptr(r.size), v.b.native(stream))
}

// copyByKernel enqueues nothing and returns errors.ErrUnsupported where kernels do not run. Above zero, grid is how
// many blocks of threads there are at most.
func (b *copyFloor) copyByKernel(v *visit, d *device, runs []run, stream backends.Stream, function uintptr,
	grid int) error {
	if b.withoutKernels || v.context != d.context.Load() {
		return errors.ErrUnsupported
	}
	kernel, err := b.kernel(d.number, copyKernel)
	if err != nil {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	argument := new(copyArgument)
	launch := func() error {
		if argument.count == 0 {
			return nil
		}
		blocks := (int(argument.words) + kernelThreads - 1) / kernelThreads
		if grid > 0 {
			blocks = min(blocks, grid)
		}
		err := b.launchBlocks(d.number, stream, kernel, blocks, unsafe.Pointer(argument))
		argument.words, argument.count = 0, 0
		return err
	}
	for _, r := range runs {
		if r.size > largestRun {
			if err := v.copyRun(r, stream, function); err != nil {
				return err
			}
			continue
		}
		if argument.add(r); argument.count == mostRuns {
			if err := launch(); err != nil {
				return err
			}
		}
	}
	return launch()
}

func (a *copyArgument) add(r run) {
	a.runs[a.count] = copyRun{uint64(r.target), uint64(r.source), uint32(r.size), a.words}
	word := wordSize(r.target | r.source)
	a.words += uint32((r.size + word - 1) / word)
	a.count++
}

// wordSize is the bytes that hamr_copy moves at once.
func wordSize(addresses backends.Address) int {
	if low := int(addresses & 15); low != 0 {
		return low & -low
	}
	return 16
}

// copyAttributes is CUmemcpyAttributes.
type copyAttributes struct {
	sourceOrder            uint32
	sourceHint, targetHint struct{ kind, id int32 }
	flags                  uint32
}

// inStreamOrder is CU_MEMCPY_SRC_ACCESS_ORDER_STREAM.
const inStreamOrder = 1

// batch is the arguments of cuMemcpyBatchAsync.
type batch struct {
	targets, sources, sizes []uintptr
	attributes              copyAttributes
	first, failed           uintptr
}

// copyByBatch enqueues nothing and returns errors.ErrUnsupported where the driver has no such function, and on the
// legacy stream, which that function does not take.
func (v *visit) copyByBatch(runs []run, stream backends.Stream) error {
	driver := &v.b.driver
	if !driver.batches() || stream <= legacyStream {
		return errors.ErrUnsupported
	}
	all := make([]uintptr, 3*len(runs))
	l := &batch{targets: all[:len(runs)], sources: all[len(runs) : 2*len(runs)], sizes: all[2*len(runs):],
		attributes: copyAttributes{sourceOrder: inStreamOrder}}
	for i, r := range runs {
		l.targets[i], l.sources[i], l.sizes[i] = uintptr(r.target), uintptr(r.source), uintptr(r.size)
	}
	err := v.callBatch(l, len(runs), stream)
	var failed *backends.DeviceError
	if errors.As(err, &failed) && (failed.Code == invalidValue || failed.Code == notSupported) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err) // what is wrong, the driver says of single copies, too
	}
	return err
}

func (v *visit) callBatch(l *batch, count int, stream backends.Stream) error {
	driver := &v.b.driver
	if driver.MemcpyBatchNow != 0 {
		return v.b.callWithPointers(driver.MemcpyBatchNow, uintptr(unsafe.Pointer(&l.targets[0])),
			uintptr(unsafe.Pointer(&l.sources[0])),
			uintptr(unsafe.Pointer(&l.sizes[0])), uintptr(count), uintptr(unsafe.Pointer(&l.attributes)),
			uintptr(unsafe.Pointer(&l.first)), 1,
			v.b.native(stream))
	}
	return v.b.callWithPointers(driver.MemcpyBatch, uintptr(unsafe.Pointer(&l.targets[0])),
		uintptr(unsafe.Pointer(&l.sources[0])),
		uintptr(unsafe.Pointer(&l.sizes[0])), uintptr(count), uintptr(unsafe.Pointer(&l.attributes)),
		uintptr(unsafe.Pointer(&l.first)), 1,
		uintptr(unsafe.Pointer(&l.failed)), v.b.native(stream))
}

func (d *EntryPoints) batches() bool { return d.MemcpyBatch != 0 || d.MemcpyBatchNow != 0 }

// copyBeside calls do to enqueue copies on stream. If the driver takes no batches on stream, do gets another stream,
// which runs after the work that stream holds now, and before its later work.
func (v *visit) copyBeside(d *device, by way, stream backends.Stream, do func(backends.Stream) error) error {
	if by != byBatch || stream > legacyStream || !v.b.driver.batches() || v.context != d.context.Load() {
		return do(stream)
	}
	side, err := v.streamOfThread(d)
	if err != nil {
		return err
	}
	//mutate:skip a batch beside the default stream does not wait for it
	if err := v.follow(d, side, stream); err != nil {
		return err
	}
	err = do(side)
	//mutate:skip the default stream does not wait for a batch beside it
	if behind := v.follow(d, stream, side); behind != nil {
		err = errors.Join(err, behind, v.finish(side))
	}
	return err
}
