package cuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// inContext runs a test on a thread where a context is current, or none if it is
// zero, and checks that this is so afterwards, to the bottom of the stack.
func (r *rig) inContext(t *testing.T, context uintptr, test func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if context != 0 {
			assert.NoError(t, r.call(r.driver.CtxPushCurrent, context))
		}
		test()
		assert.Equal(t, context, r.current(t))
		if context != 0 {
			assert.NoError(t, r.call(r.driver.CtxPopCurrent, scratch().slot(0)))
			assert.Zero(t, r.current(t), "something was left on the stack of contexts")
		}
	}()
	<-done
}

// everything does each operation once on a device, with a stream of it.
func (r *rig) everything(t *testing.T, device int, s backends.Stream) {
	check := func(err error) {
		t.Helper()
		assert.NoError(t, err)
	}
	for _, a := range allocators {
		q := backends.Request{Allocator: a, Device: device, Size: 1000, Stream: s, Zero: true}
		at, err := r.Allocate(q)
		check(err)
		region := backends.Region{Address: at, Allocator: a, Device: device}
		_, host := pageable(t, 1000)
		check(r.Fill(region, []byte{1, 2, 3}, 300, s))
		check(r.fillByPasses(region, []byte{1, 2, 3}, 300, s))
		check(copied(r.Copy(host, region, 1000, s)))
		check(copied(r.Copy(region, host, 1000, s)))
		_, err = r.Locate(at)
		check(err)
		check(r.Synchronize(device, s))
		check(r.Free(region, 1000, s))
		region.Allocator = backends.None
		assert.Error(t, r.Free(region, 1000, s))
	}
	e, err := r.NewEvent(device)
	check(err)
	check(r.Record(device, e, s))
	check(r.Wait(device, s, e))
	check(r.SynchronizeEvent(device, e))
	done, err := r.Done(device, e)
	check(err)
	assert.True(t, done)
	check(r.DestroyEvent(device, e))
	check(r.Synchronize(device, s))
	idle, err := r.Idle(device, s)
	check(err)
	assert.True(t, idle)
	made, err := r.NewStream(device)
	check(err)
	check(r.DestroyStream(device, made))
	_, err = r.Resolve(device, perThreadStream)
	check(err)
	_, _, err = r.MemoryInfo(device)
	check(err)
	_, err = r.Describe(device)
	check(err)
	_, err = r.Identity(device)
	check(err)
	check(r.Trim())
	// Misuse is an error, and leaves the context alone, too.
	_, err = r.Allocate(backends.Request{Allocator: backends.CUDA, Device: device, Size: 1 << 60})
	assert.Error(t, err)
}

func TestCurrentContextIsRestored(t *testing.T) {
	for _, devices := range []int{1, 2} {
		onEachDriver(t, devices, func(t *testing.T, r *rig) {
			foreign := r.newContext(t, 0)
			last := devices - 1
			primary, err := r.primaryContext(last)
			require.NoError(t, err)
			own := r.newStream(t, 0)
			theirs := r.newForeignStream(t, foreign)
			for _, context := range []uintptr{0, foreign, primary} {
				for _, s := range []backends.Stream{defaultStream, legacyStream, perThreadStream, own, theirs} {
					r.inContext(t, context, func() { r.everything(t, 0, s) })
				}
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	onEachDriver(t, 1, func(t *testing.T, r *rig) {
		foreign := r.newContext(t, 0)
		primary, err := r.primaryContext(0)
		require.NoError(t, err)
		for _, context := range []uintptr{0, foreign} {
			r.inContext(t, context, func() {
				device, err := r.CurrentDevice()
				assert.NoError(t, err)
				assert.Zero(t, device)
				before, err := r.Activate(0)
				assert.NoError(t, err)
				assert.Equal(t, context, before)
				assert.Equal(t, primary, r.current(t))
				assert.NoError(t, r.Restore(before))
			})
		}
		_, err = r.Activate(64)
		assert.ErrorContains(t, err, "no device 64")
	})
}

func TestCurrentDevice(t *testing.T) {
	onEachDriver(t, 2, func(t *testing.T, r *rig) {
		second, err := r.primaryContext(1)
		require.NoError(t, err)
		r.inContext(t, second, func() {
			device, err := r.CurrentDevice()
			assert.NoError(t, err)
			assert.Equal(t, 1, device)
		})
	})
}

// Where the right context is current, as it mostly is beside other libraries.
func TestCostOfHotOperations(t *testing.T) {
	r := emulate(t, nil)
	context, err := r.primaryContext(0)
	require.NoError(t, err)
	stream := r.newStream(t, 0)
	device := r.reserve(t, backends.CUDA, 0, 1024, 0)
	_, host := pageable(t, 1024)
	event, err := r.NewEvent(0)
	require.NoError(t, err)
	operations := map[string]struct {
		calls int
		do    func() error
	}{
		"upload":              {3, func() error { return copied(r.Copy(device.Region, host, 1024, legacyStream)) }},
		"download":            {2, func() error { return copied(r.Copy(host, device.Region, 1024, legacyStream)) }},
		"download on another": {3, func() error { return copied(r.Copy(host, device.Region, 1024, stream)) }},
		"fill":                {2, func() error { return r.Fill(device.Region, []byte{1, 1, 1, 1}, 256, stream) }},
		"record":              {2, func() error { return r.Record(0, event, stream) }},
		"wait":                {2, func() error { return r.Wait(0, legacyStream, event) }},
		"resolve":             {0, func() error { _, err := r.Resolve(0, 0); return err }},
		"locate":              {1, func() error { _, err := r.Locate(device.Address); return err }},
		"allocate and free": {4, func() error {
			at, err := r.Allocate(backends.Request{Allocator: backends.CUDAAsync, Size: 1024, Stream: stream})
			if err != nil {
				return err
			}
			return r.Free(backends.Region{Address: at, Allocator: backends.CUDAAsync}, 1024, stream)
		}},
	}
	r.inContext(t, context, func() {
		for name, o := range operations {
			assert.NoError(t, o.do())
			before := r.allCalls()
			assert.NoError(t, o.do())
			assert.Equal(t, o.calls, r.allCalls()-before, name)
			if !raceDetector {
				assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = o.do() }), 0.1, name)
			}
			assert.NoError(t, r.Synchronize(0, stream))
			assert.NoError(t, r.Synchronize(0, legacyStream))
		}
	})
	require.NoError(t, r.DestroyEvent(0, event))
}

func (r *rig) allCalls() (sum int) {
	for _, symbol := range symbols() {
		sum += r.calls(symbol)
	}
	return sum
}

func TestMemoryOfAnotherContextIsToldApart(t *testing.T) {
	onEachDriver(t, 2, func(t *testing.T, r *rig) {
		own, err := r.Context(1)
		require.NoError(t, err)
		foreign := r.newContext(t, 1)
		for context, want := range map[uintptr]uintptr{own: own, foreign: foreign} {
			v, err := r.enterContext(context)
			require.NoError(t, err)
			require.NoError(t, r.call(r.driver.MemAlloc, v.slot(0), 100))
			at := backends.Address(v.out[0])
			v.leave()
			found, err := r.Locate(at + 10)
			require.NoError(t, err)
			assert.Equal(t, want, found.Context)
			assert.Equal(t, 1, found.Device)
			v, err = r.enterContext(context)
			require.NoError(t, err)
			require.NoError(t, r.call(r.driver.MemFree, uintptr(at)))
			v.leave()
		}
	})
}
