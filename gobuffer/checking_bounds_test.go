package gobuffer_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

const enoughFrees = 500

// busyDevice calls a function whenever it has taken memory back, up to enoughFrees times.
type busyDevice struct {
	*backendtest.Fake
	freed  func()
	counts atomic.Int64
}

// stop has the function called no more.
func (d *busyDevice) stop() { d.counts.Store(enoughFrees) }

func (d *busyDevice) Free(at backends.Region, size int, s backends.Stream) error {
	err := d.Fake.Free(at, size, s)
	if d.freed != nil && d.counts.Add(1) < enoughFrees {
		d.freed()
	}
	return err
}

func busyWorld(t *testing.T, most int64) (*gobuffer.Runtime, *busyDevice, *gobuffer.Checker) {
	t.Helper()
	d := &busyDevice{Fake: backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA,
		Reuses: true})}
	require.NoError(t, d.Probe())
	r, err := gobuffer.NewRuntime(host.New(), d)
	require.NoError(t, err)
	c, err := r.Check(most, nil)
	require.NoError(t, err)
	return r, d, c
}

func allocateAndFree(t *testing.T, r *gobuffer.Runtime) {
	t.Helper()
	m, err := r.Allocate(backends.CUDA, 0, muchKept/2, 0, false)
	if assert.NoError(t, err) {
		assert.NoError(t, m.Release())
	}
}

func TestLookReturnsThoughOthersFreeMemory(t *testing.T) {
	r, d, c := busyWorld(t, muchKept)
	allocateAndFree(t, r)
	d.freed = func() { allocateAndFree(t, r) }
	found, _ := c.Look()
	assert.Empty(t, found)
	assert.Less(t, d.counts.Load(), int64(enoughFrees), "Look has looked at what was freed later")
	assert.Positive(t, d.counts.Load())
	d.stop()
	c.Stop()
}

func TestLookReturnsThoughMoreIsKeptThanMayBe(t *testing.T) {
	r, d, c := busyWorld(t, muchKept)
	looks := gobuffer.HoldLooking(c)
	for range 4 {
		allocateAndFree(t, r)
	}
	d.freed = func() { allocateAndFree(t, r) }
	looks()
	found, _ := c.Look()
	assert.Empty(t, found)
	assert.Less(t, d.counts.Load(), int64(enoughFrees), "Look has waited for who looks at what is too much")
	d.stop()
	c.Stop()
}

func TestSettlingReturnsThoughLibrariesFreeMemory(t *testing.T) {
	r, d, c := busyWorld(t, 0)
	c.Stop()
	grantAndFree := func() {
		at, err := r.Grant(gobuffer.LibraryCuPy, 0, 512, 0, backends.NoTag)
		if assert.NoError(t, err) {
			assert.NoError(t, r.UseFor(at, backends.EveryStream))
			assert.True(t, r.FreeFor(at))
		}
	}
	d.freed = func() {
		time.Sleep(time.Millisecond) // or all is freed before who waits, and need wait no more, has a processor
		grantAndFree()
	}
	grantAndFree()
	r.SettleGrants()
	assert.Less(t, d.counts.Load(), int64(enoughFrees), "SettleGrants has waited for what was freed later")
	d.stop()
	r.SettleGrants()
}

func TestALibrarysMemoryThatIsNotTakenBackIsKept(t *testing.T) {
	r, fake, c := checkedWorld(t, muchKept)
	at, err := r.Grant(gobuffer.LibraryCuPy, 0, 4096, 0, backends.NoTag)
	require.NoError(t, err)
	require.True(t, r.FreeFor(at))
	fake.FailAt("Free", 0, &backends.NotFreedError{Reason: errInjected})
	c.Stop()
	allocations, _ := fake.Live()
	assert.Equal(t, 1, allocations, "the device cannot be reached")
	fake.StopFailing()
	require.NoError(t, r.ReleasePostponed())
	allocations, _ = fake.Live()
	assert.Zero(t, allocations)
	for _, each := range r.Statistics() {
		assert.Zero(t, each.Adopted, each.Allocator)
		assert.Zero(t, each.Live, each.Allocator)
	}
}
