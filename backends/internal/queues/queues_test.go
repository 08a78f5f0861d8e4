package queues

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

const (
	standard = 0x10000 // the default queue of device 0; that of device 1 is at twice the address
	theirs   = 0x50000 // somebody else's queue on device 0, which keeps no order
)

var errRefused = errors.New("refused")

// fake is a runtime of two devices. It notes its calls, and its events have the statuses that a test gives them.
type fake struct {
	*Queues
	calls    []string
	statuses map[uintptr]Status
	held     map[uintptr]int // references to events
	made     uintptr
	late     error
	times    map[uintptr]uint64
}

func newFake() (*fake, Streams) {
	f := &fake{statuses: map[uintptr]Status{}, held: map[uintptr]int{}, times: map[uintptr]uint64{}}
	f.Queues = New(f)
	f.Own(standard, 0)
	f.Own(2*standard, 1)
	return f, f.Streams()
}

func (f *fake) note(call string) { f.calls = append(f.calls, call) }

func (f *fake) Default(_ string, device int) (*Queue, error) {
	if device > 1 {
		return nil, errRefused
	}
	return f.Of("", backends.Stream((device+1)*standard))
}

func (f *fake) Create(device int) (*Queue, error) {
	f.made++
	return f.Own(10*standard+f.made, device), nil
}

func (f *fake) Release(uintptr) error { f.note("release"); return nil }

func (f *fake) Inspect(_ string, queue uintptr) (int, bool, error) {
	if queue != theirs {
		return 0, false, NoStream(queue)
	}
	return 0, false, nil
}

func (f *fake) Barrier(uintptr) error { f.note("barrier"); return nil }

func (f *fake) Behind(_ *Queue, _ uintptr, device int) error {
	f.note("behind " + strconv.Itoa(device))
	return nil
}

func (f *fake) Mark(uintptr) (uintptr, error) {
	f.made++
	f.held[f.made]++
	if _, set := f.statuses[f.made]; !set {
		f.statuses[f.made] = 1
	}
	return f.made, nil
}

func (f *fake) Finish(uintptr) error { f.note("finish"); return nil }

func (f *fake) Retain(event uintptr) (uintptr, error) { f.held[event]++; return event, nil }

func (f *fake) Drop(event uintptr) {
	if f.held[event]--; f.held[event] == 0 {
		delete(f.held, event)
	}
}

func (f *fake) Status(event uintptr) (Status, error) { return f.statuses[event], nil }

func (f *fake) Failed(_ Status, marker bool) error {
	return errors.New("failed, marker " + strconv.FormatBool(marker))
}

func (f *fake) Late() error { return f.late }

func (f *fake) WaitFor(uintptr) error { f.note("wait"); return nil }

func (f *fake) End(event uintptr) (uint64, bool, error) {
	at, known := f.times[event]
	return at, known, nil
}

func (f *fake) InvalidQueue(call, message string) error { return errors.New(call + ": " + message) }
func (f *fake) InvalidEvent(call, message string) error { return errors.New(call + ": " + message) }

func TestWorkGoesBetweenBarriersWhereAQueueKeepsNoOrder(t *testing.T) {
	f, _ := newFake()
	work := func() error { f.note("work"); return nil }
	for stream, calls := range map[backends.Stream][]string{0: {"work"}, theirs: {"barrier", "work", "barrier"}} {
		f.calls = nil
		q, err := f.On("", 0, stream)
		require.NoError(t, err)
		require.NoError(t, f.InOrder(q, work))
		assert.Equal(t, calls, f.calls)
		assert.Equal(t, 1, q.Unfinished())
		require.NoError(t, f.Queues.Finish(q))
		assert.Zero(t, q.Unfinished())
	}
	f.calls = nil
	q, err := f.Of("", theirs)
	require.NoError(t, err)
	require.ErrorIs(t, f.InOrder(q, func() error { return errRefused }), errRefused)
	assert.Equal(t, []string{"barrier"}, f.calls)
}

func (f *fake) finishAll() {
	for e := range f.statuses {
		f.statuses[e] = Complete
	}
}

func TestQueuesAreFound(t *testing.T) {
	f, s := newFake()
	own, err := s.NewStream(1)
	require.NoError(t, err)
	for stream, device := range map[backends.Stream]int{0: backends.HostDevice, standard: 0, own: 1, theirs: 0} {
		found, err := s.StreamDevice(stream)
		require.NoError(t, err)
		assert.Equal(t, device, found)
	}
	for _, stream := range []backends.Stream{1, leastQueue - 1, leastQueue, 0x60000} {
		_, err := s.StreamDevice(stream)
		assert.ErrorIs(t, err, backends.ErrNoStream, "%#x", stream)
	}
	_, err = s.Resolve(0, own)
	assert.ErrorContains(t, err, "is of device 1, and the memory of 0")
	resolved, err := s.Resolve(1, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 2*standard, resolved)
	first, err := f.Of("", theirs)
	require.NoError(t, err)
	second, err := f.Of("", theirs)
	require.NoError(t, err)
	assert.Same(t, first, second)
	require.NoError(t, s.DestroyStream(1, own))
	assert.Equal(t, []string{"release"}, f.calls)
	_, err = s.StreamDevice(own)
	assert.ErrorIs(t, err, backends.ErrNoStream)
}

func TestAMarkerTellsWhetherAQueueIsIdle(t *testing.T) {
	f, s := newFake()
	idle, err := s.Idle(0, 0)
	require.NoError(t, err)
	assert.False(t, idle, "the marker is under way")
	assert.Len(t, f.held, 1)
	f.finishAll()
	f.statuses[2] = Complete // the next one
	idle, err = s.Idle(0, 0)
	require.NoError(t, err)
	assert.True(t, idle)
	assert.Empty(t, f.held, "both markers were dropped")
	f.statuses[3] = Complete
	f.late = errRefused
	_, err = s.Idle(0, 0)
	require.ErrorIs(t, err, errRefused)
	f.statuses[4] = -5
	_, err = s.Idle(0, 0)
	require.ErrorContains(t, err, "failed, marker true")
	assert.Empty(t, f.held)
}

func TestEvents(t *testing.T) {
	f, s := newFake()
	e, err := s.NewTimedEvent(0)
	require.NoError(t, err)
	assert.Equal(t, []backends.Event{e}, f.Events())
	done, err := s.Done(0, e)
	require.NoError(t, err)
	assert.True(t, done, "it stands for nothing")
	_, err = s.Elapsed(0, e, e)
	require.ErrorIs(t, err, backends.ErrNotRecorded)
	require.NoError(t, s.Record(0, e, 0))
	done, err = s.Done(0, e)
	require.NoError(t, err)
	assert.False(t, done)
	_, err = s.Elapsed(0, e, e)
	require.ErrorIs(t, err, backends.ErrNotDone)
	require.NoError(t, s.Wait(1, 0, e))
	require.NoError(t, s.SynchronizeEvent(0, e))
	assert.Equal(t, []string{"behind 0", "wait"}, f.calls)

	f.statuses[1] = -3
	_, err = s.Done(0, e)
	require.ErrorContains(t, err, "failed, marker false")
	f.finishAll()
	require.NoError(t, s.Wait(1, 0, e))
	assert.Len(t, f.calls, 2, "nothing waits for what is over")
	_, err = s.Elapsed(0, e, e)
	require.ErrorIs(t, err, backends.ErrUntimed)
	later, err := s.NewTimedEvent(0)
	require.NoError(t, err)
	require.NoError(t, s.Record(0, later, theirs))
	f.finishAll()
	f.times = map[uintptr]uint64{1: 1000, 2: 3500}
	elapsed, err := s.Elapsed(0, e, later)
	require.NoError(t, err)
	assert.Equal(t, 2500*time.Nanosecond, elapsed)

	adopted, err := s.AdoptEvent(0, 77)
	require.NoError(t, err)
	_, err = s.Elapsed(0, adopted, e)
	require.ErrorIs(t, err, backends.ErrUntimed)
	assert.Equal(t, map[uintptr]int{1: 1, 2: 1, 77: 1}, f.held)
	require.NoError(t, s.Record(0, adopted, 0))
	assert.NotContains(t, f.held, uintptr(77), "the event stands for something else now")
	for _, each := range slices.Clone(f.Events()) {
		require.NoError(t, s.DestroyEvent(0, each))
	}
	assert.Empty(t, f.held)
	assert.ErrorContains(t, s.DestroyEvent(0, e), "DestroyEvent: 0x10000000001 is no event of hamr's")
}
