package hetero_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

// currents is a backend whose runtime has a current device on each thread.
type currents struct {
	*backendtest.Fake
	threads sync.Map // of numbers of devices, by threads'
	fail    error    // of Restore
}

func (c *currents) CurrentDevice() (int, error) {
	device, _ := c.threads.LoadOrStore(syscall.Gettid(), 0)
	return device.(int), nil
}

func (c *currents) Activate(device int) (uintptr, error) {
	before, _ := c.CurrentDevice()
	c.threads.Store(syscall.Gettid(), device)
	return uintptr(before), nil
}

func (c *currents) Restore(before uintptr) error {
	c.threads.Store(syscall.Gettid(), int(before))
	return c.fail
}

func newCurrents(t *testing.T) (*currents, *hetero.Scheduler) {
	c := &currents{Fake: backendtest.NewFake(backendtest.FakeOptions{Devices: 4})}
	r, err := gobuffer.NewRuntime(c)
	require.NoError(t, err)
	return c, hetero.New(r)
}

func (c *currents) assertCurrent(t *testing.T, want int) {
	t.Helper()
	device, err := c.CurrentDevice()
	assert.NoError(t, err)
	assert.Equal(t, want, device)
}

// The device of a context is current in it alone: nested, where errors and panics leave it, on any
// thread.
func TestAContextsDeviceIsCurrentOnItsThread(t *testing.T) {
	c, s := newCurrents(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	chooser, err := s.NewChooser(hetero.ChooserOptions{})
	require.NoError(t, err)
	var contexts []*hetero.Context
	for key := range 4 {
		token, err := chooser.Choose(key)
		require.NoError(t, err)
		ctx, err := s.Begin(token)
		require.NoError(t, err)
		require.NoError(t, token.Release())
		contexts = append(contexts, ctx)
	}
	err = contexts[3].OnThread(func() error {
		c.assertCurrent(t, 3)
		require.ErrorIs(t, contexts[2].OnThread(func() error {
			c.assertCurrent(t, 2)
			return errInjected
		}), errInjected)
		c.assertCurrent(t, 3)
		assert.PanicsWithValue(t, "a module's", func() {
			_ = contexts[1].OnThread(func() error { panic("a module's") })
		})
		c.assertCurrent(t, 3)
		return nil
	})
	require.NoError(t, err)
	c.assertCurrent(t, 0)
	var users sync.WaitGroup
	for device, ctx := range contexts {
		users.Go(func() {
			for range 20 {
				assert.NoError(t, ctx.OnThread(func() error {
					runtime.Gosched()
					c.assertCurrent(t, device)
					return nil
				}))
			}
		})
	}
	users.Wait()
	for _, ctx := range contexts {
		require.NoError(t, ctx.End())
		require.NoError(t, ctx.End(), "twice")
		require.ErrorIs(t, ctx.OnThread(func() error { return nil }), hetero.ErrEnded)
	}
	c.fail = errInjected
	require.ErrorIs(t, s.OnDevice(cuda0, func() error { return nil }), errInjected)
}

// For the memory of a whole job the device is current, and there is no stream.
func TestTheMemoryOfAJob(t *testing.T) {
	c, s := newCurrents(t)
	for device := range 4 {
		require.NoError(t, s.OnDevice(hetero.Place{Backend: "cuda", Device: device}, func() error {
			c.assertCurrent(t, device)
			return nil
		}))
	}
	assert.Zero(t, c.CallCount("NewStream"))
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, s.OnDevice(hetero.Place{Backend: "cuda", Device: 4}, nil), &bad)
}

func TestABackendWithoutACurrentDevice(t *testing.T) {
	w := newWorld(t, 1, late)
	called := false
	require.NoError(t, w.scheduler.OnDevice(cuda0, func() error { called = true; return nil }))
	assert.True(t, called)
}

// begin returns a context of a token that has gone.
func (w *world) begin(p hetero.Place) *hetero.Context {
	w.t.Helper()
	token := w.choose(w.chooser(hetero.ChooserOptions{Among: []string{p.String()}}), 0)
	ctx, err := w.scheduler.Begin(token)
	require.NoError(w.t, err)
	require.Equal(w.t, token.Stream(), ctx.Stream())
	require.Equal(w.t, p, ctx.Place())
	require.NoError(w.t, token.Release())
	return ctx
}

func TestSourcesThatAreNone(t *testing.T) {
	w := newWorld(t, 1, late)
	var token *hetero.Token
	var product *hetero.Product[int]
	for _, source := range []hetero.Source{nil, token, &hetero.Token{}, product, &hetero.Product[int]{}} {
		_, err := w.scheduler.Begin(source)
		require.ErrorIs(t, err, gobuffer.ErrZero)
		var bad *gobuffer.ArgumentError
		require.ErrorAs(t, err, &bad)
	}
	other := newWorld(t, 1, late)
	foreign := other.choose(other.chooser(hetero.ChooserOptions{}), 0)
	_, err := w.scheduler.Begin(foreign)
	require.ErrorContains(t, err, "of another Scheduler")
	ctx, err := other.scheduler.Begin(foreign)
	require.NoError(t, err)
	made, err := hetero.Wrap(ctx, 1)
	require.NoError(t, err)
	var nowhere *hetero.Scheduler
	for _, source := range []hetero.Source{foreign, made} {
		_, err = nowhere.Begin(source)
		require.ErrorContains(t, err, "of another Scheduler")
	}
	require.NoError(t, errors.Join(ctx.End(), made.Release()))
	require.NoError(t, foreign.Release())
	_, err = other.scheduler.Begin(foreign)
	require.ErrorIs(t, err, hetero.ErrReleased)

	var none *hetero.Context
	for _, ctx := range []*hetero.Context{none, {}} {
		require.ErrorIs(t, ctx.OnThread(nil), gobuffer.ErrZero)
		require.ErrorIs(t, receive(t, ctx.Done(context.Background())), gobuffer.ErrZero)
		_, err = hetero.Wrap(ctx, 1)
		require.ErrorIs(t, err, gobuffer.ErrZero)
		require.NoError(t, ctx.End())
		assert.Zero(t, ctx.Stream())
		assert.Zero(t, ctx.Place())
	}
}

// External work: acquire enqueues and returns; whoever waits is told, and nothing blocks.
func TestWorkIsToldWhenItIsOver(t *testing.T) {
	for _, devices := range []int{1, 4} {
		w := newWorld(t, devices, late)
		place := hetero.Place{Backend: "cuda", Device: devices - 1}
		ctx := w.begin(place)
		w.work(place, ctx.Stream())
		cancellable, cancel := context.WithCancel(t.Context())
		told := []<-chan error{ctx.Done(context.Background()), ctx.Done(cancellable)}
		require.NoError(t, ctx.End())
		require.ErrorIs(t, receive(t, ctx.Done(t.Context())), hetero.ErrEnded)
		time.Sleep(time.Millisecond)
		for _, each := range told {
			assert.Empty(t, each)
		}
		w.finish()
		for _, each := range told {
			require.NoError(t, receive(t, each))
		}
		cancel()
		w.assertNeverBlocked()
	}
}

func TestFailedWorkIsTold(t *testing.T) {
	w := newWorld(t, 1, late)
	ctx := w.begin(cuda0)
	w.cuda.FailAt("Execute", 1, errInjected)
	w.work(cuda0, ctx.Stream())
	told := ctx.Done(t.Context())
	w.finish()
	require.ErrorIs(t, receive(t, told), errInjected)
	require.NoError(t, ctx.End())
	w.cuda.FailAt("Record", 1, errInjected)
	again := w.begin(cuda0)
	require.ErrorIs(t, receive(t, again.Done(t.Context())), errInjected)
	require.NoError(t, again.End())
	w.assertNeverBlocked()
}

// With eight events in flight: each of those that are cancelled is told the cause, and the work goes on.
func TestCancelledWork(t *testing.T) {
	w := newWorld(t, 4, late)
	cause := errors.New("a user's wish")
	cancellable, cancel := context.WithCancelCause(context.Background())
	var cancelled, others []<-chan error
	ran := 0
	for i := range 8 {
		place := hetero.Place{Backend: "cuda", Device: i % 4}
		ctx := w.begin(place)
		require.NoError(t, w.cuda.Launch(place.Device, ctx.Stream(), func(func(backends.Address, int) []byte) { ran++ }))
		if i%2 == 0 {
			cancelled = append(cancelled, ctx.Done(cancellable))
		} else {
			others = append(others, ctx.Done(t.Context()))
		}
		require.NoError(t, ctx.End())
	}
	cancel(cause)
	for _, told := range cancelled {
		require.ErrorIs(t, receive(t, told), cause)
	}
	w.finish()
	for _, told := range others {
		require.NoError(t, receive(t, told))
	}
	assert.Equal(t, 8, ran)
	w.assertNeverBlocked()
}

// Nothing is left of waiting that could have been cancelled, and was not.
func TestWorkThatIsOverLeavesNothing(t *testing.T) {
	w := newWorld(t, 1, late)
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := runtime.NumGoroutine()
	ctx := w.begin(cuda0)
	for range 20 {
		told := ctx.Done(cancellable)
		w.finish()
		require.NoError(t, receive(t, told))
	}
	require.NoError(t, ctx.End())
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "goroutines are left")
	}
}
