package gobuffer_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// pausing is a backend whose memory can be paused, but for the device's part of it.
type pausing struct {
	*backendtest.Fake

	mu     sync.Mutex
	tagged map[backends.Address]backends.Tag
	paused map[backends.Tag]backends.Keep
	fails  error
	comes  func() // is called while memory is resumed
	held   int
	// refuses is what Free says.
	refuses error
	launch  func(held int) // is told how much is held during a launch
}

func (p *pausing) LaunchFunction(device int, s backends.Stream, f backends.Function, shape backends.LaunchShape,
	arguments unsafe.Pointer) error {
	p.mu.Lock()
	p.launch(p.held)
	p.mu.Unlock()
	return p.Fake.LaunchFunction(device, s, f, shape, arguments)
}

func (p *pausing) Allocate(r backends.Request) (backends.Address, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, is := p.paused[r.Tag]; is {
		return 0, &backends.PausedError{Tag: r.Tag}
	}
	at, err := p.Fake.Allocate(r)
	if err == nil && r.Tag != backends.NoTag {
		p.tagged[at] = r.Tag
	}
	return at, err
}

func (p *pausing) Free(at backends.Region, size int, s backends.Stream) error {
	if p.refuses != nil {
		return p.refuses
	}
	return p.Fake.Free(at, size, s)
}

func (p *pausing) Pauses(a backends.Allocator) bool { return a == backends.CUDAVMM }

func (p *pausing) Pause(t backends.Tag, keep backends.Keep, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails == nil {
		p.paused[t] = keep
	}
	return p.fails
}

func (p *pausing) Resume(t backends.Tag) error {
	if p.comes != nil {
		p.comes()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails == nil {
		delete(p.paused, t)
	}
	return p.fails
}

func (p *pausing) IsPaused(t backends.Tag) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.paused[t]
	return is
}

func (p *pausing) Hold(at ...backends.Region) (func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range at {
		if _, is := p.paused[p.tagged[r.Address]]; is {
			return nil, &backends.PausedError{Tag: p.tagged[r.Address]}
		}
	}
	p.held++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held--
	}, nil
}

func (p *pausing) Paused() []backends.Paused { return nil }

func pausingRuntime(t *testing.T) (*gobuffer.Runtime, *pausing) {
	fake := backendtest.NewFake(growing(1 << 16))
	p := &pausing{Fake: fake, tagged: map[backends.Address]backends.Tag{}, paused: map[backends.Tag]backends.Keep{}}
	r, err := gobuffer.NewRuntime(p, host.New())
	require.NoError(t, err)
	return r, p
}

func TestPausedMemoryIsNotGivenAway(t *testing.T) {
	r, p := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	o := gobuffer.Options{Allocator: backends.CUDAVMM, Tag: tag}
	a, err := r.NewArray(arrayiface.Int32, []int{16}, o)
	require.NoError(t, err)
	current := func() int64 { return r.Statistics()[0].Current }
	assert.EqualValues(t, 64, current())
	require.NoError(t, r.Pause(t.Name(), backends.KeepHost, ""))
	assert.Zero(t, current())
	var refused *backends.PausedError
	_, _, err = a.Covering()
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, a.Before(0), &refused)
	_, err = a.Access(backends.SpaceCUDA, 0)
	require.ErrorAs(t, err, &refused)
	_, err = r.NewArray(arrayiface.Int32, []int{16}, o)
	require.ErrorAs(t, err, &refused)
	p.fails = &backends.OutOfMemoryError{Allocator: backends.CUDAVMM}
	require.ErrorIs(t, r.Resume(t.Name()), p.fails)
	assert.Zero(t, current())
	p.fails = nil
	require.NoError(t, r.Resume(t.Name()))
	assert.EqualValues(t, 64, current())
	_, _, err = a.Covering()
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

func TestMemoryIsHeldWhileAKernelIsLaunchedOnIt(t *testing.T) {
	r, p := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	a, err := r.NewArray(arrayiface.Uint8, []int{bytesLaunched}, gobuffer.Options{Allocator: backends.CUDAVMM, Tag: tag})
	require.NoError(t, err)
	m, err := r.NewModule("cuda", backendtest.Kernels)
	require.NoError(t, err)
	fill, err := m.Kernel(0, "conformance_fill")
	require.NoError(t, err)
	launches := 0
	p.launch = func(held int) {
		assert.Equal(t, 1, held)
		launches++
	}
	arguments := []gobuffer.Argument{{Array: a}, launchValue(uint32(bytesLaunched)), launchValue(byte(3))}
	require.NoError(t, fill.Launch(byThreads, gobuffer.LaunchStream{}, arguments))
	require.NoError(t, r.Pause(t.Name(), backends.KeepHost, ""))
	var refused *backends.PausedError
	require.ErrorAs(t, fill.Launch(byThreads, gobuffer.LaunchStream{}, arguments), &refused)
	require.NoError(t, r.Resume(t.Name()))
	assert.Equal(t, 1, launches)
	assert.Zero(t, p.held)
	require.NoError(t, m.Close())
	require.NoError(t, a.Close())
}

func TestTagsAreNamed(t *testing.T) {
	r, _ := pausingRuntime(t)
	_, err := r.Tag("")
	require.ErrorContains(t, err, "a name")
	require.ErrorContains(t, r.Pause("none", backends.KeepHost, ""), "there is none")
	_, err = r.Tag("kv")
	require.NoError(t, err)
	require.ErrorContains(t, r.Resume("none"), `"kv"`)
	assert.Zero(t, (*gobuffer.Runtime)(nil).PausableWord())
	assert.ErrorIs(t, (*gobuffer.Runtime)(nil).Pause("kv", backends.KeepHost, ""), gobuffer.ErrZero)
	assert.ErrorIs(t, (*gobuffer.Runtime)(nil).Resume("kv"), gobuffer.ErrZero)
	assert.Empty(t, (*gobuffer.Runtime)(nil).Pausable())
}

func TestPausedMemoryIsBesideTheLimits(t *testing.T) {
	r, _ := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	o := gobuffer.Options{Allocator: backends.CUDAVMM}
	tagged := o
	tagged.Tag = tag
	a, err := r.NewArray(arrayiface.Uint8, []int{600}, tagged)
	require.NoError(t, err)
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryHamr, "", 0, 1000))
	_, err = r.NewArray(arrayiface.Uint8, []int{600}, o)
	require.Error(t, err)
	require.NoError(t, r.Pause(t.Name(), backends.KeepNothing, ""))
	b, err := r.NewArray(arrayiface.Uint8, []int{600}, o)
	require.NoError(t, err)
	assert.EqualValues(t, 600, r.LibraryLimits()[0].Current)
	var full *backends.OutOfMemoryError
	require.ErrorAs(t, r.Resume(t.Name()), &full)
	assert.True(t, full.Limited)
	require.NoError(t, b.Close())
	require.NoError(t, r.Resume(t.Name()))
	assert.EqualValues(t, 600, r.LibraryLimits()[0].Current)
	require.NoError(t, a.Close())
}

// Else both would be beyond the limit together.
func TestMemoryThatIsBeingResumedCountsForTheLimits(t *testing.T) {
	r, p := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	o := gobuffer.Options{Allocator: backends.CUDAVMM}
	tagged := o
	tagged.Tag = tag
	require.NoError(t, r.LimitLibrary(gobuffer.LibraryHamr, "", 0, 1000))
	a, err := r.NewArray(arrayiface.Uint8, []int{600}, tagged)
	require.NoError(t, err)
	require.NoError(t, r.Pause(t.Name(), backends.KeepNothing, ""))
	var full *backends.OutOfMemoryError
	p.comes = func() {
		_, err := r.NewArray(arrayiface.Uint8, []int{600}, o)
		require.ErrorAs(t, err, &full)
	}
	for _, p.fails = range []error{errors.New("no"), nil} {
		assert.ErrorIs(t, r.Resume(t.Name()), p.fails)
		used := map[bool]int{true: 600}[p.fails == nil]
		assert.EqualValues(t, used, r.LibraryLimits()[0].Current)
	}
	require.NoError(t, a.Close())
}

func TestPausedMemoryCountsForNoPeak(t *testing.T) {
	r, p := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	made := func(tag backends.Tag, size int) *gobuffer.Array {
		a, err := r.NewArray(arrayiface.Uint8, []int{size}, gobuffer.Options{Allocator: backends.CUDAVMM, Tag: tag})
		require.NoError(t, err)
		return a
	}
	is := func(current, peak int64) {
		t.Helper()
		s := r.Statistics()[0]
		assert.Equal(t, []int64{current, peak}, []int64{s.Current, s.Peak})
	}
	a, b := made(tag, 1000), made(tag, 100)
	is(1100, 1100)
	for range 2 {
		require.NoError(t, r.Pause(t.Name(), backends.KeepHost, ""))
		is(0, 1100)
	}
	other := made(backends.NoTag, 900)
	is(900, 1100)
	require.NoError(t, b.Close())
	is(900, 1100)
	p.fails = errors.New("no")
	require.ErrorIs(t, r.Resume(t.Name()), p.fails)
	is(900, 1100)
	p.fails = nil
	for range 2 {
		require.NoError(t, r.Resume(t.Name()))
		is(1900, 1900)
	}
	require.NoError(t, r.Pause(t.Name(), backends.KeepHost, ""))
	r.ResetPeaks()
	is(900, 900)
	require.NoError(t, r.Resume(t.Name()))
	is(1900, 1900)
	require.NoError(t, a.Close())
	require.NoError(t, other.Close())
	is(0, 1900)
}

func TestManyCopiesOfWhichOneIsPausedCopyNothing(t *testing.T) {
	r, p := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	made := func(o gobuffer.Options, value uint8) *gobuffer.Buffer[uint8] {
		o.Allocator = backends.CUDAVMM
		a, err := r.NewArray(arrayiface.Uint8, []int{64}, o)
		require.NoError(t, err)
		b, err := gobuffer.Typed[uint8](a)
		require.NoError(t, err)
		require.NoError(t, b.FillValue(value))
		return b
	}
	first, second := made(gobuffer.Options{}, 1), made(gobuffer.Options{}, 2)
	away := made(gobuffer.Options{Tag: tag}, 3)
	index, err := r.NewArray(arrayiface.Int32, []int{1}, gobuffer.Options{Allocator: backends.CUDAHost})
	require.NoError(t, err)
	zero, err := gobuffer.Typed[int32](index)
	require.NoError(t, err)
	require.NoError(t, zero.FillValue(0))
	require.NoError(t, r.Pause(t.Name(), backends.KeepHost, ""))
	holds := func(b *gobuffer.Buffer[uint8], value uint8) {
		t.Helper()
		got := make([]uint8, 64)
		require.NoError(t, b.Get(0, got))
		assert.Equal(t, bytes.Repeat([]byte{value}, 64), got)
	}
	var refused *backends.PausedError
	for name, lists := range map[string][2][]*gobuffer.Array{
		"read":              {{first.Array, first.Array}, {second.Array, away.Array}},
		"written":           {{first.Array, away.Array}, {second.Array, first.Array}},
		"read, apart":       {{first.Array, second.Array}, {second.Array, away.Array}},
		"written, at first": {{away.Array, first.Array}, {second.Array, second.Array}},
	} {
		require.ErrorAs(t, gobuffer.CopyMany(lists[0], lists[1]), &refused, name)
		require.ErrorAs(t, gobuffer.CopyBlocks(lists[0], index, lists[1], index), &refused, name)
		holds(first, 1)
		holds(second, 2)
	}
	assert.Zero(t, p.held)
	require.NoError(t, r.Resume(t.Name()))
	closeAll(t, first.Array, second.Array, away.Array, index)
}

func TestPausedMemoryThatCannotBeFreedYetIsNotInUse(t *testing.T) {
	r, p := pausingRuntime(t)
	tag, err := r.Tag(t.Name())
	require.NoError(t, err)
	options := gobuffer.Options{Allocator: backends.CUDAVMM, Tag: tag}
	a, err := r.NewArray(arrayiface.Uint8, []int{1000}, options)
	require.NoError(t, err)
	current := func() int64 { return r.Statistics()[0].Current }
	require.NoError(t, r.Pause(t.Name(), backends.KeepHost, ""))
	p.refuses = &backends.NotFreedError{Reason: errors.New("no")}
	require.ErrorIs(t, a.Close(), p.refuses)
	assert.Zero(t, current())
	require.NoError(t, r.Resume(t.Name()))
	assert.EqualValues(t, 1000, current())
	p.refuses = nil
	require.NoError(t, r.ReleasePostponed())
	assert.Zero(t, current())
}
