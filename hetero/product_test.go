package hetero_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/hetero"
)

func wrap[T any](w *world, ctx *hetero.Context, value T) *hetero.Product[T] {
	w.t.Helper()
	p, err := hetero.Wrap(ctx, value)
	require.NoError(w.t, err)
	assert.Equal(w.t, ctx.Place(), p.Place())
	assert.Equal(w.t, ctx.Stream(), p.Stream())
	return p
}

func (w *world) beginFrom(source hetero.Source) *hetero.Context {
	w.t.Helper()
	ctx, err := w.scheduler.Begin(source)
	require.NoError(w.t, err)
	return ctx
}

// produced is a product of pending work, and its value.
func (w *world) produced(p hetero.Place) *hetero.Product[string] {
	w.t.Helper()
	ctx := w.begin(p)
	w.work(p, ctx.Stream())
	made := wrap(w, ctx, "clusters")
	require.NoError(w.t, ctx.End())
	return made
}

func TestTheFirstConsumerTakesOverTheStream(t *testing.T) {
	for _, devices := range []int{1, 4} {
		w := newWorld(t, devices, late)
		place := hetero.Place{Backend: "cuda", Device: devices - 1}
		p := w.produced(place)
		first, second := w.beginFrom(p), w.beginFrom(p)
		assert.Equal(t, place, first.Place())
		assert.Equal(t, place, second.Place())
		assert.Equal(t, p.Stream(), first.Stream())
		assert.NotEqual(t, p.Stream(), second.Stream())
		for _, ctx := range []*hetero.Context{first, second} {
			waits := w.calls(func() {
				value, err := hetero.Get(ctx, p)
				require.NoError(t, err)
				assert.Equal(t, "clusters", value)
			}, "Wait", "Done")
			if ctx == first {
				assert.Empty(t, waits, "the same stream")
			} else {
				assert.Equal(t, []string{"Done", "Wait"}, waits)
			}
		}
		w.finish()
		for round := range 2 {
			asked := w.calls(func() {
				_, err := hetero.Get(second, p)
				require.NoError(t, err)
			}, "Wait", "Done")
			assert.NotContains(t, asked, "Wait")
			assert.Len(t, asked, 1-round, "no wait for an event that is done, nor asked again")
		}
		require.NoError(t, p.Release())
		require.NoError(t, p.Release(), "twice")
		require.NoError(t, first.End())
		require.NoError(t, second.End())
		w.assertNeverBlocked()
	}
}

// Of all that a context has wrapped one consumer continues on its stream; the next context on that
// stream has a successor of its own.
func TestAStreamHasOneSuccessor(t *testing.T) {
	w := newWorld(t, 1, late)
	ctx := w.begin(cuda0)
	left, right := wrap(w, ctx, 1), wrap(w, ctx, 2.5)
	require.NoError(t, ctx.End())
	one, other := w.beginFrom(left), w.beginFrom(right)
	assert.Equal(t, left.Stream(), one.Stream())
	assert.NotEqual(t, left.Stream(), other.Stream())
	next := wrap(w, one, 3)
	require.NoError(t, one.End())
	last := w.beginFrom(next)
	assert.Equal(t, next.Stream(), last.Stream())
	late := w.beginFrom(left)
	assert.NotEqual(t, left.Stream(), late.Stream())
	require.NoError(t, errors.Join(left.Release(), right.Release(), next.Release(), other.End(), last.End(), late.End()))
}

func TestExactlyOneOfManyTakesOverTheStream(t *testing.T) {
	w := newWorld(t, 2, lateWork)
	for round := range 20 {
		p := w.produced(hetero.Place{Backend: "cuda", Device: round % 2})
		var users sync.WaitGroup
		var same atomic.Int32
		for range 8 {
			users.Go(func() {
				ctx, err := w.scheduler.Begin(p)
				assert.NoError(t, err)
				if ctx.Stream() == p.Stream() {
					same.Add(1)
				}
				value, err := hetero.Get(ctx, p)
				assert.NoError(t, err)
				assert.Equal(t, "clusters", value)
				q, err := hetero.Wrap(ctx, 1)
				assert.NoError(t, err)
				assert.NoError(t, errors.Join(q.Release(), ctx.End()))
			})
		}
		users.Wait()
		assert.Equal(t, int32(1), same.Load())
		require.NoError(t, p.Release())
	}
	w.assertNeverBlocked()
}

// What a consumer on another stream reads is there: a missing wait gives another value at every run.
func TestAConsumerRunsAfterItsProducers(t *testing.T) {
	w := newWorld(t, 1, late)
	m, err := w.runtime.Allocate(backends.CUDA, 0, 8, 0, false)
	require.NoError(t, err)
	at := m.Region().Address
	write := func(ctx *hetero.Context, value byte) {
		require.NoError(t, w.cuda.Launch(0, ctx.Stream(),
			func(memory func(backends.Address, int) []byte) { memory(at, 1)[0] = value }))
	}
	ctx := w.begin(cuda0)
	write(ctx, 1)
	p := wrap(w, ctx, at)
	require.NoError(t, ctx.End())
	first, second := w.beginFrom(p), w.beginFrom(p)
	read := byte(0)
	_, err = hetero.Get(second, p)
	require.NoError(t, err)
	require.NoError(t, w.cuda.Launch(0, second.Stream(),
		func(memory func(backends.Address, int) []byte) { read = memory(at, 1)[0] }))
	require.NoError(t, w.cuda.Synchronize(0, second.Stream()))
	assert.Equal(t, byte(1), read)
	require.NoError(t, errors.Join(p.Release(), first.End(), second.End(), m.Release()))
}

func TestAProductOfAnotherDevice(t *testing.T) {
	w := newWorld(t, 4, late)
	p := w.produced(hetero.Place{Backend: "cuda", Device: 3})
	for _, place := range places(t, "cuda:1", "hip:3") {
		ctx := w.begin(place)
		_, err := hetero.Get(ctx, p)
		var mismatch *hetero.DeviceMismatchError
		require.ErrorAs(t, err, &mismatch)
		assert.Equal(t, hetero.DeviceMismatchError{Have: p.Place(), Want: place}, *mismatch)
		assert.ErrorContains(t, err, "the product is on cuda:3, and the context on "+place.String())
		require.NoError(t, ctx.End())
	}
	require.NoError(t, p.Release())
}

// Whoever asks for it moves a product of another device, and runs after its work.
func TestMigration(t *testing.T) {
	w := newWorld(t, 2, late)
	p := w.produced(hetero.Place{Backend: "cuda", Device: 1})
	moved := func(value string, from hetero.Place) (string, error) { return value + " from " + from.String(), nil }
	never := func(string, hetero.Place) (string, error) { panic("not called") }

	here := w.beginFrom(p)
	value, err := hetero.Migrate(here, p, never)
	require.NoError(t, err)
	assert.Equal(t, "clusters", value)

	there := w.begin(cuda0)
	calls := w.calls(func() {
		value, err = hetero.Migrate(there, p, moved)
		require.NoError(t, err)
	}, "Wait")
	assert.Equal(t, "clusters from cuda:1", value)
	assert.Equal(t, []string{"Wait"}, calls)

	elsewhere := w.begin(hetero.Place{Backend: "hip", Device: 0})
	_, err = hetero.Migrate(elsewhere, p, never)
	require.ErrorContains(t, err, "a product of cuda:1 cannot be waited for by a stream of hip:0")
	told := p.Done(t.Context())
	w.finish()
	require.NoError(t, receive(t, told))
	value, err = hetero.Migrate(elsewhere, p, moved)
	require.NoError(t, err)
	assert.Equal(t, "clusters from cuda:1", value)

	_, err = hetero.Migrate[string](elsewhere, p, nil)
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, err, &bad)
	_, err = hetero.Migrate(there, p, func(string, hetero.Place) (string, error) { return "", errInjected })
	require.ErrorIs(t, err, errInjected)
	require.NoError(t, errors.Join(p.Release(), here.End(), there.End(), elsewhere.End()))
	w.assertNeverBlocked()
}

// Every consumer is told of work that failed, though the runtime tells it once.
func TestAFailedProductIsToldToEachConsumer(t *testing.T) {
	w := newWorld(t, 1, late)
	w.cuda.FailAt("Execute", 1, errInjected)
	p := w.produced(cuda0)
	w.finish()
	first, second := w.beginFrom(p), w.beginFrom(p)
	_, err := hetero.Get(second, p)
	require.ErrorIs(t, err, errInjected)
	for _, ctx := range []*hetero.Context{first, second} {
		_, err := hetero.Get(ctx, p)
		require.ErrorIs(t, err, errInjected)
	}
	_, err = p.Pending()
	require.ErrorIs(t, err, errInjected)
	require.NoError(t, errors.Join(p.Release(), first.End(), second.End()))
	assert.Equal(t, 1, w.scheduler.CacheStatistics()[0].Events.Destroyed, "it is not told again")
}

func TestPendingProducts(t *testing.T) {
	w := newWorld(t, 1, late)
	p := w.produced(cuda0)
	pending, err := p.Pending()
	require.NoError(t, err)
	assert.True(t, pending)
	told := p.Done(t.Context())
	require.NoError(t, p.Release(), "what is awaited stays until then")
	_, err = p.Pending()
	require.ErrorIs(t, err, hetero.ErrReleased)
	w.finish()
	require.NoError(t, receive(t, told))
	_, err = p.Pending()
	require.ErrorIs(t, err, hetero.ErrReleased)
	require.ErrorIs(t, receive(t, p.Done(t.Context())), hetero.ErrReleased)
	_, err = w.scheduler.Begin(p)
	require.ErrorIs(t, err, hetero.ErrReleased)
	ctx := w.begin(cuda0)
	_, err = hetero.Get(ctx, p)
	require.ErrorIs(t, err, hetero.ErrReleased)
	require.NoError(t, ctx.End())
	w.assertNeverBlocked()
}

func TestProductsThatAreNone(t *testing.T) {
	w := newWorld(t, 1, late)
	ctx := w.begin(cuda0)
	var none *hetero.Product[int]
	for _, p := range []*hetero.Product[int]{none, {}} {
		_, err := hetero.Get(ctx, p)
		require.ErrorIs(t, err, gobuffer.ErrZero)
		_, err = hetero.Migrate(ctx, p, func(int, hetero.Place) (int, error) { return 0, nil })
		require.ErrorIs(t, err, gobuffer.ErrZero)
		_, err = p.Pending()
		require.ErrorIs(t, err, gobuffer.ErrZero)
		require.ErrorIs(t, receive(t, p.Done(t.Context())), gobuffer.ErrZero)
		require.NoError(t, p.Release())
		assert.Zero(t, p.Place())
		assert.Zero(t, p.Stream())
	}
	require.NoError(t, ctx.End())
	_, err := hetero.Wrap(ctx, 1)
	require.ErrorIs(t, err, hetero.ErrEnded)
}
