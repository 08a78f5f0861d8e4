package hetero_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("not reached")
	}
}

func (w *world) recorded(p hetero.Place) (backends.Stream, backends.Event) {
	w.t.Helper()
	stream, err := w.scheduler.TakeStream(p)
	require.NoError(w.t, err)
	w.work(p, stream)
	e, err := w.scheduler.Record(p, stream)
	require.NoError(w.t, err)
	return stream, e
}

func (w *world) giveBack(p hetero.Place, stream backends.Stream, e backends.Event) {
	w.t.Helper()
	require.NoError(w.t, w.scheduler.GiveEvent(p, e))
	require.NoError(w.t, w.scheduler.GiveStream(p, stream))
}

func TestAWatchedEventIsToldOnceAndWhenItIsOver(t *testing.T) {
	w := newWorld(t, 1, late)
	stream, e := w.recorded(cuda0)
	told := make(chan error, 2)
	number, err := w.scheduler.Watch(cuda0, e, func(err error) { told <- err })
	require.NoError(t, err)
	before := w.cuda.CallCount("Done")
	require.Eventually(t, func() bool { return w.cuda.CallCount("Done") > before+10 }, patience, time.Millisecond)
	assert.Empty(t, told)
	w.finish()
	require.NoError(t, receive(t, told))
	assert.False(t, w.scheduler.Unwatch(number))
	w.giveBack(cuda0, stream, e)
	w.assertNeverBlocked()
	assert.Empty(t, told)
}

func TestAnEventThatFailsIsTold(t *testing.T) {
	w := newWorld(t, 1, late)
	stream, e := w.recorded(cuda0)
	w.cuda.FailAt("Done", 3, errInjected)
	told := make(chan error, 1)
	_, err := w.scheduler.Watch(cuda0, e, func(err error) { told <- err })
	require.NoError(t, err)
	require.ErrorIs(t, receive(t, told), errInjected)
	w.giveBack(cuda0, stream, e)
}

func TestNobodyAsksAnEventThatIsNotWatchedAnyMore(t *testing.T) {
	w := newWorld(t, 1, late)
	stream, e := w.recorded(cuda0)
	for range 50 {
		number, err := w.scheduler.Watch(cuda0, e, func(error) { assert.Fail(t, "told") })
		require.NoError(t, err)
		before := w.cuda.CallCount("Done")
		require.Eventually(t, func() bool { return w.cuda.CallCount("Done") > before }, patience, 10*time.Microsecond)
		require.True(t, w.scheduler.Unwatch(number))
		before = w.cuda.CallCount("Done")
		time.Sleep(50 * time.Microsecond)
		require.Equal(t, before, w.cuda.CallCount("Done"))
		assert.False(t, w.scheduler.Unwatch(number))
	}
	w.giveBack(cuda0, stream, e)
}

// Each event is told or not, as its Unwatch says, whoever is sooner.
func TestTellingAndUnwatchingAtTheSameTime(t *testing.T) {
	w := newWorld(t, 2, lateWork)
	var users sync.WaitGroup
	for i := range 8 {
		place := hetero.Place{Backend: []string{"cuda", "hip"}[i%2], Device: i / 2 % 2}
		users.Go(func() {
			for range 25 {
				stream, e := w.recorded(place)
				told := make(chan error, 2)
				number, err := w.scheduler.Watch(place, e, func(err error) { told <- err })
				assert.NoError(t, err)
				time.Sleep(rand.N(200 * time.Microsecond))
				if rand.IntN(2) == 0 && w.scheduler.Unwatch(number) {
					assert.Empty(t, told)
				} else {
					assert.NoError(t, receive(t, told))
				}
				w.giveBack(place, stream, e)
			}
		})
	}
	users.Wait()
	w.assertNeverBlocked()
}

// Who is told may use the Scheduler, and what comes while others have been waited for long is seen.
func TestToldMayWatchAgain(t *testing.T) {
	w := newWorld(t, 1, late)
	stream, e := w.recorded(cuda0)
	long, pending := w.recorded(cuda0)
	number, err := w.scheduler.Watch(cuda0, pending, func(error) { assert.Fail(t, "told") })
	require.NoError(t, err)
	time.Sleep(50 * time.Millisecond) // until the pauses are long ones
	require.NoError(t, w.cuda.Synchronize(0, stream))
	over := make(chan error)
	_, err = w.scheduler.Watch(cuda0, e, func(err error) {
		assert.NoError(t, err)
		_, err = w.scheduler.Watch(cuda0, e, func(err error) { over <- err })
		assert.NoError(t, err)
	})
	require.NoError(t, err)
	require.NoError(t, receive(t, over))
	require.True(t, w.scheduler.Unwatch(number))
	w.giveBack(cuda0, stream, e)
	w.giveBack(cuda0, long, pending)
}

func TestBadWatches(t *testing.T) {
	w := newWorld(t, 1, late)
	_, err := w.scheduler.Watch(cuda0, 1, nil)
	var bad *gobuffer.ArgumentError
	require.ErrorAs(t, err, &bad)
	_, err = w.scheduler.Watch(hetero.Place{Backend: "cuda", Device: 1}, 1, func(error) {})
	require.ErrorAs(t, err, &bad)
	var none *hetero.Scheduler
	assert.False(t, none.Unwatch(1))
}

// gated is a device that answers for an event only when the test lets it.
type gated struct {
	*backendtest.Fake
	event backends.Event
	asked chan struct{} // receives when it is asked
	open  chan bool     // what it answers
}

func (g *gated) Done(device int, e backends.Event) (bool, error) {
	if e != g.event {
		return g.Fake.Done(device, e)
	}
	g.asked <- struct{}{}
	return <-g.open, nil
}

func newGated(t *testing.T) (*gated, *world) {
	g := &gated{Fake: backendtest.NewFake(late), asked: make(chan struct{}), open: make(chan bool)}
	r, err := gobuffer.NewRuntime(g)
	require.NoError(t, err)
	return g, &world{t: t, runtime: r, scheduler: hetero.New(r), cuda: g.Fake}
}

func TestAnEventIsToldOrUnwatched(t *testing.T) {
	g, w := newGated(t)
	_, g.event = w.recorded(cuda0)
	told := make(chan error, 1)
	number, err := w.scheduler.Watch(cuda0, g.event, func(err error) { told <- err })
	require.NoError(t, err)
	<-g.asked
	unwatched := make(chan bool)
	go func() { unwatched <- w.scheduler.Unwatch(number) }()
	time.Sleep(10 * time.Millisecond) // it waits for the answer
	g.open <- true
	require.NoError(t, receive(t, told))
	assert.False(t, receive(t, unwatched))
}

func TestAnUnwatchedEventIsNotAsked(t *testing.T) {
	g, w := newGated(t)
	_, e := w.recorded(cuda0)
	_, g.event = w.recorded(cuda0)
	over := make(chan error, 1)
	_, err := w.scheduler.Watch(cuda0, g.event, func(err error) { over <- err })
	require.NoError(t, err)
	<-g.asked // and so on: both are asked when they are there both
	number, err := w.scheduler.Watch(cuda0, e, func(error) { assert.Fail(t, "told") })
	require.NoError(t, err)
	g.open <- false
	<-g.asked // the other is next
	require.True(t, w.scheduler.Unwatch(number))
	before := w.cuda.CallCount("Done")
	g.open <- true
	require.NoError(t, receive(t, over))
	assert.Equal(t, before, w.cuda.CallCount("Done"))
}
