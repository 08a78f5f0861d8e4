package cuda

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// symbols lists the entry points that the backend calls.
func symbols() (list []string) {
	fields := reflect.TypeFor[EntryPoints]()
	for i := range fields.NumField() {
		symbol, _, _ := strings.Cut(fields.Field(i).Tag.Get("dl"), ",")
		// The emulator counts these with their successors, which are used.
		if symbol != "cuDeviceGetUuid" && symbol != "cuMemcpyBatchAsync" {
			list = append(list, symbol)
		}
	}
	return list
}

// operation is something that can fail at each of its calls. do returns how to
// undo it; it is nil after an error.
type operation struct {
	name    string
	devices int
	prepare func(t *testing.T, r *rig) (do func() (undo func() error, err error))
}

func nothing() error { return nil }

// simple is an operation on memory that leaves nothing to undo.
func simple(name string, a backends.Allocator, do func(r *rig, b block) error) operation {
	return operation{name, 1, func(t *testing.T, r *rig) func() (func() error, error) {
		b := r.reserve(t, a, 0, 3000, 0)
		return func() (func() error, error) { return nothing, do(r, b) }
	}}
}

func allocation(a backends.Allocator, zero bool) operation {
	return operation{fmt.Sprintf("allocate %s, zero %v", a, zero), 1,
		func(t *testing.T, r *rig) func() (func() error, error) {
			return func() (func() error, error) {
				at, err := r.Allocate(backends.Request{Allocator: a, Size: 1000, Zero: zero})
				return func() error { return r.Free(backends.Region{Address: at, Allocator: a}, 1000, 0) }, err
			}
		}}
}

func release(a backends.Allocator) operation {
	return operation{fmt.Sprintf("free %s", a), 1, func(t *testing.T, r *rig) func() (func() error, error) {
		at, err := r.Allocate(backends.Request{Allocator: a, Size: 1000})
		require.NoError(t, err)
		return func() (func() error, error) {
			return nothing, r.Free(backends.Region{Address: at, Allocator: a}, 1000, 0)
		}
	}}
}

// growing is memory whose addresses end after 4 MiB, with so many free bytes of them behind.
func growing(t *testing.T, r *rig, behind int) backends.Region {
	t.Setenv("HAMR_EMULATOR_ADDRESSES", strconv.Itoa(behind))
	r.Backend.reserve = 4 << 20
	at, err := r.Allocate(backends.Request{Allocator: backends.CUDAVMM, Size: 3000})
	require.NoError(t, err)
	return backends.Region{Address: at, Allocator: backends.CUDAVMM}
}

// growth is one to 6 MiB, which the driver can do or not.
func growth(behind int) operation {
	return operation{fmt.Sprintf("grow, %d bytes of addresses behind", behind), 1,
		func(t *testing.T, r *rig) func() (func() error, error) {
			at := growing(t, r, behind)
			t.Cleanup(func() { assert.NoError(t, r.Free(at, 0, 0)) })
			return func() (func() error, error) {
				_, err := r.Grow(at, 3000, 6<<20)
				if behind == 0 && errors.Is(err, errors.ErrUnsupported) {
					_, err = r.Grow(at, 3000, 4<<20)
				}
				return nothing, err
			}
		}}
}

func relocation(behind int) operation {
	return operation{fmt.Sprintf("relocate, %d bytes of addresses behind", behind), 2,
		func(t *testing.T, r *rig) func() (func() error, error) {
			at := growing(t, r, behind)
			t.Cleanup(func() { assert.NoError(t, r.Free(at, 0, 0)) })
			require.NoError(t, r.Enable(1, 0))
			_, err := r.Grow(at, 3000, 4<<20)
			require.NoError(t, err)
			return func() (func() error, error) {
				to, _, err := r.Relocate(at, 4<<20, 6<<20)
				return func() error { return r.Free(backends.Region{Address: to, Allocator: backends.CUDAVMM}, 6<<20, 0) }, err
			}
		}}
}

func copied(_ backends.Progress, err error) error { return err }

func operations() []operation {
	list := []operation{
		simple("fill", backends.CUDA, func(r *rig, b block) error { return r.Fill(b.Region, []byte{1, 2, 3, 4}, 10, 0) }),
		simple("fill in passes", backends.CUDA, func(r *rig, b block) error {
			return r.fillByPasses(b.Region, []byte{1, 2, 3}, 1000, 0)
		}),
		simple("copy within", backends.CUDA, func(r *rig, b block) error {
			return copied(r.Copy(moved(b.Region, 1500), b.Region, 1500, 0))
		}),
		simple("copy managed", backends.CUDAUnified, func(r *rig, b block) error {
			return copied(r.Copy(moved(b.Region, 1500), b.Region, 1500, 0))
		}),
		simple("locate", backends.CUDA, func(r *rig, b block) error { _, err := r.Locate(b.Address); return err }),
		simple("trim", backends.CUDAAsync, func(r *rig, _ block) error { return r.Trim() }),
		simple("idle", backends.CUDA, func(r *rig, _ block) error { _, err := r.Idle(0, 0); return err }),
		simple("synchronize the device", backends.CUDA, func(r *rig, _ block) error { return r.SynchronizeDevice(0) }),
		simple("synchronize", backends.CUDA, func(r *rig, _ block) error { return r.Synchronize(0, 0) }),
		simple("memory info", backends.CUDA, func(r *rig, _ block) error { _, _, err := r.MemoryInfo(0); return err }),
		simple("describe", backends.CUDA, func(r *rig, _ block) error { _, err := r.Describe(0); return err }),
		simple("current device", backends.CUDA, func(r *rig, _ block) error { _, err := r.CurrentDevice(); return err }),
		batched("batch up", backends.CUDA, backends.Malloc),
		batched("batch down", backends.Malloc, backends.CUDA),
		batched("batch within", backends.CUDA, backends.CUDA),
		batched("batch from page-locked memory", backends.CUDA, backends.CUDAHost),
		stagedBlocks("batch of blocks up", backends.CUDA, backends.Malloc),
		stagedBlocks("batch of blocks down", backends.Malloc, backends.CUDA),
		blocksOperation("batch of blocks, listed", 600, listedBlocks, listedBlocks),
		blocksOperation("batch of blocks, named on the device", mostChecked+1, namedBlocks, namedBlocks),
		blocksOperation("batch of blocks, named on the device and listed", mostChecked+1, namedBlocks, listedBlocks),
		{"kernel", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			return func() (func() error, error) { _, err := r.kernel(0, "absent"); return nil, notFound(err) }
		}},
		{"copy between devices", 2, func(t *testing.T, r *rig) func() (func() error, error) {
			a, b := r.reserve(t, backends.CUDAAsync, 0, 3000, 0), r.reserve(t, backends.CUDAAsync, 1, 3000, 0)
			require.NoError(t, r.Synchronize(0, 0))
			return func() (func() error, error) {
				err := copied(r.Copy(b.Region, a.Region, 3000, 0))
				return nothing, errors.Join(err, r.Synchronize(1, 0))
			}
		}},
		{"enable peers", 2, func(t *testing.T, r *rig) func() (func() error, error) {
			r.reserve(t, backends.CUDAAsync, 1, 3000, 0)
			r.reserve(t, backends.CUDAVMM, 1, 3000, 0)
			return func() (func() error, error) { return nothing, r.Enable(0, 1) }
		}},
		{"disable peers", 2, func(t *testing.T, r *rig) func() (func() error, error) {
			r.reserve(t, backends.CUDAAsync, 1, 3000, 0)
			r.reserve(t, backends.CUDAVMM, 1, 3000, 0)
			require.NoError(t, r.Enable(0, 1))
			return func() (func() error, error) { return nothing, r.Disable(0, 1) }
		}},
		{"activate", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			return func() (func() error, error) {
				before, err := r.Activate(0)
				return func() error { return r.Restore(before) }, err
			}
		}},
		{"new stream", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			return func() (func() error, error) {
				s, err := r.NewStream(0)
				return func() error { return r.DestroyStream(0, s) }, err
			}
		}},
		{"destroy stream", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			s, err := r.NewStream(0)
			require.NoError(t, err)
			return func() (func() error, error) { return nothing, r.DestroyStream(0, s) }
		}},
		{"resolve", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			b := r.reserve(t, backends.CUDA, 0, 3000, 0)
			return func() (func() error, error) {
				// Work, so that the idle stream is not the answer.
				if err := r.Fill(b.Region, []byte{1}, 3000, perThreadStream); err != nil {
					return nil, err
				}
				_, err := r.Resolve(0, perThreadStream)
				return nothing, err
			}
		}},
		{"events", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			return func() (func() error, error) { return nothing, useEvent(r, 0) }
		}},
		{"events of another context", 1, func(t *testing.T, r *rig) func() (func() error, error) {
			s := r.newForeignStream(t, r.newContext(t, 0))
			return func() (func() error, error) { return nothing, useEvent(r, s) }
		}},
	}
	for _, behind := range []int{16 << 20, 0} {
		list = append(list, growth(behind), relocation(behind))
	}
	list = append(append(append(list, sharing()...), poolSharing()...), pauseAndResume()...)
	for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAUnified, backends.CUDAHost,
		backends.CUDAVMM} {
		list = append(list, allocation(a, false), allocation(a, true), release(a))
	}
	for _, stream := range []backends.Stream{legacyStream, perThreadStream} {
		list = append(list, operation{fmt.Sprintf("pageable, stream %d", stream), 1,
			func(t *testing.T, r *rig) func() (func() error, error) {
				b := r.reserve(t, backends.CUDA, 0, 3000, 0)
				_, host := r.host(t, 3000)
				host.Allocator = backends.Malloc
				return func() (func() error, error) {
					if err := copied(r.Copy(b.Region, host, 3000, stream)); err != nil {
						return nil, err
					}
					return nothing, copied(r.Copy(host, b.Region, 3000, stream))
				}
			}})
	}
	return list
}

// notFound lets pass that the driver knows no such kernel.
func notFound(err error) error {
	var failed *backends.DeviceError
	if errors.As(err, &failed) && failed.Code == 500 {
		return nil
	}
	return err
}

func useEvent(r *rig, s backends.Stream) error {
	e, err := r.NewEvent(0)
	if err != nil {
		return err
	}
	err = r.Record(0, e, s)
	if err == nil {
		err = r.Wait(0, 0, e)
	}
	if err == nil {
		_, err = r.Done(0, e)
	}
	if err == nil {
		err = r.SynchronizeEvent(0, e)
	}
	return errors.Join(err, r.DestroyEvent(0, e))
}

// Failures of these do no harm, or are made up for.
var tolerated = []string{"cuCtxPopCurrent_v2", "cuCtxEnablePeerAccess", "cuEventDestroy_v2", "cuMemHostRegister_v2",
	"cuMemGetAllocationPropertiesFromHandle"}

// Where these fail, a batch goes another way: without the kernel, or without staging.
var otherWays = []string{"cuModuleLoadData", "cuModuleGetFunction", "cuStreamIsCapturing", "cuMemHostAlloc",
	"cuCtxGetCurrent"}

// TestEveryCallFails makes each call of each operation fail in turn, once where no
// context is current and once where another library's is.
func TestEveryCallFails(t *testing.T) {
	const code = 719
	for _, o := range operations() {
		for _, foreign := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, foreign context %v", o.name, foreign), func(t *testing.T) {
				for symbol, count := range callsOf(t, o, foreign) {
					for nth := 1; nth <= count; nth++ {
						t.Run(fmt.Sprintf("%s %d", symbol, nth), func(t *testing.T) {
							runFailing(t, o, foreign, symbol, nth, code)
						})
					}
				}
			})
		}
	}
}

// start runs prepare, with a context of another library's current or none.
func (o operation) start(t *testing.T, foreign bool) (*rig, func() (func() error, error)) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	r := emulate(t, withDevices(o.devices))
	if foreign {
		context := r.newContext(t, 0)
		require.NoError(t, r.call(r.driver.CtxPushCurrent, context))
		t.Cleanup(func() {
			v := scratch()
			assert.NoError(t, r.call(r.driver.CtxPopCurrent, v.slot(0)))
			assert.EqualValues(t, context, v.out[0], "the depth of the stack of contexts")
		})
	}
	return r, o.prepare(t, r)
}

func callsOf(t *testing.T, o operation, foreign bool) map[string]int {
	counts := map[string]int{}
	t.Run("unharmed", func(t *testing.T) {
		r, do := o.start(t, foreign)
		for _, symbol := range symbols() {
			counts[symbol] = -r.calls(symbol)
		}
		undo, err := do()
		require.NoError(t, err)
		for _, symbol := range symbols() {
			counts[symbol] += r.calls(symbol)
		}
		if undo != nil {
			require.NoError(t, undo())
		}
	})
	return counts
}

func runFailing(t *testing.T, o operation, foreign bool, symbol string, nth, code int) {
	r, do := o.start(t, foreign)
	before := r.current(t)
	r.fail(symbol, nth, code)
	undo, err := do()
	r.stopFailing()
	if o.name != "activate" || err != nil {
		assert.Equal(t, before, r.current(t), "the current context")
	}
	if err == nil {
		// Without access between them, copies from device to device are staged.
		connecting := o.devices > 1 && strings.HasPrefix(symbol, "cuCtx")
		other := strings.HasPrefix(o.name, "batch") && slices.Contains(otherWays, symbol)
		again := symbol == "cuMemRelease" && (strings.HasPrefix(o.name, "pause") || strings.HasPrefix(o.name, "resume"))
		assert.True(t, connecting || other || again || slices.Contains(tolerated, symbol), "no error")
		if undo != nil {
			require.NoError(t, undo())
		}
	} else {
		var failed *backends.DeviceError
		require.ErrorAs(t, err, &failed)
		want := backends.DeviceError{API: "cuda", Call: symbol, Name: "CUDA_ERROR_LAUNCH_FAILED", Code: code,
			Message: failed.Message}
		assert.Equal(t, want, *failed)
	}
	if (strings.HasPrefix(o.name, "free") || o.name == "destroy stream") && err == nil {
		return
	}
	if o.name == "free cuda_vmm" && len(r.extents.list) == 0 {
		return // it was an error of what was waited for
	}
	undo, err = do()
	if o.name == "kernel" && symbol == "cuModuleLoadData" {
		assert.Error(t, err, "a failure to load is remembered")
		return
	}
	require.NoError(t, err, "the next attempt")
	if undo != nil {
		require.NoError(t, undo())
	}
}
