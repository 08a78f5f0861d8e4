package gobuffer_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// observedFake is a device whose work the test tells of.
type observedFake struct {
	*backendtest.Fake
	to      backends.Witness
	stopped int
	failure error
}

func (f *observedFake) Observe(to backends.Witness) (stop func(), err error) {
	if f.failure != nil {
		return nil, f.failure
	}
	f.to = to
	return func() { f.stopped++ }, nil
}

// Copy tells of itself, on a queue that is waited for at once.
func (f *observedFake) Copy(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	if f.to != nil {
		f.enqueue(99, "copy", touch(dst.Address, size, backends.DoesWrite), touch(src.Address, size, backends.OnlyReads))
		f.to.Over(99)
	}
	return f.Fake.Copy(dst, src, size, s)
}

// observedWorld is a Runtime with such a device, and a Checker that knows stacks by numbers.
func observedWorld(t *testing.T) (*gobuffer.Runtime, *observedFake, *gobuffer.Checker) {
	t.Helper()
	fake := &observedFake{Fake: backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA,
		Reuses: true})}
	require.NoError(t, fake.Probe())
	r, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	var mutex sync.Mutex
	number := int64(0)
	c, err := r.Check(muchKept, func() int64 {
		mutex.Lock()
		defer mutex.Unlock()
		number++
		return number
	})
	require.NoError(t, err)
	t.Cleanup(func() { c.Stop() })
	return r, fake, c
}

// enqueue tells of work on bytes, as the device would.
func (f *observedFake) enqueue(q backends.Queue, name string, touches ...backends.Touch) (number uint64) {
	number, then := f.to.Enqueue(backends.Work{Queue: q, Stream: backends.Stream(q) * 16, Name: name, Touches: touches})
	if then != nil {
		then()
	}
	return number
}

func touch(at backends.Address, size int, writes backends.Writes) backends.Touch {
	return backends.Touch{Address: at, Size: size, Writes: writes}
}

func memoryOf(t *testing.T, r *gobuffer.Runtime, size int) *gobuffer.Memory {
	t.Helper()
	m, err := r.Allocate(backends.CUDA, 0, size, 0, false)
	require.NoError(t, err)
	return m
}

func TestWorkOnFreedMemoryIsFoundWhenItIsEnqueued(t *testing.T) {
	for _, writes := range []backends.Writes{backends.MayWrite, backends.OnlyReads, backends.DoesWrite} {
		r, fake, c := observedWorld(t)
		m := memoryOf(t, r, 1000)
		at := m.Region()
		fake.enqueue(1, "before", touch(at.Address, 1000, backends.DoesWrite))
		fake.to.Over(1)
		release(t, m)
		fake.enqueue(1, "after", touch(at.Address+100, 1, writes))
		fake.enqueue(1, "after", touch(at.Address+200, 1, writes)) // told once
		fake.enqueue(1, "beside", touch(at.Address-1, 1, writes), touch(at.Address+1000, 1, writes))
		found, _ := c.Found()
		require.Len(t, found, 1)
		assert.Equal(t, at, found[0].Region)
		assert.Equal(t, []int{1000, 100, 0}, []int{found[0].Size, found[0].Offset, found[0].Bytes})
		used := found[0].Used
		assert.Equal(t, []any{"after", backends.Stream(16), writes}, []any{used.Name, used.Stream, used.Writes})
		assert.Nil(t, found[0].Earlier)
		for _, moment := range []gobuffer.Moment{found[0].Allocated, found[0].Freed, used.Moment} {
			assert.NotZero(t, moment.Thread)
			assert.NotZero(t, moment.Time)
			assert.NotZero(t, moment.Stack)
		}
		again, _ := c.Look() // its looking is no use, nor what comes when the memory is given back
		assert.Empty(t, again)
		fake.enqueue(1, "later", touch(at.Address, 1, writes))
		again, _ = c.Found()
		assert.Empty(t, again)
	}
}

func TestWorkThatIsNotInOrderIsFoundWhereOneWrites(t *testing.T) {
	kinds := []backends.Writes{backends.MayWrite, backends.OnlyReads, backends.DoesWrite}
	for _, first := range kinds {
		for _, second := range kinds {
			r, fake, c := observedWorld(t)
			m := memoryOf(t, r, 1000)
			at := m.Region().Address
			fake.enqueue(1, "first", touch(at, 500, first))
			fake.enqueue(1, "the same stream", touch(at, 500, second))
			fake.enqueue(2, "other bytes", touch(at+500, 500, second))
			fake.to.After(3, 1)
			fake.enqueue(3, "after it", touch(at, 500, backends.OnlyReads))
			fake.to.Record(7, 1)
			fake.to.Wait(4, 7)
			fake.enqueue(4, "after its event", touch(at, 500, backends.OnlyReads))
			found, _ := c.Found()
			assert.Empty(t, found)
			fake.to.Over(3)
			fake.to.Over(4)
			fake.enqueue(5, "waited for", touch(at, 500, second))
			found, _ = c.Found()
			assert.Empty(t, found)
			fake.to.Over(5)
			fake.enqueue(1, "first", touch(at+100, 10, first))
			fake.enqueue(6, "second", touch(at+109, 1, second))
			fake.enqueue(6, "second", touch(at+109, 1, second))
			found, _ = c.Found()
			if first != backends.DoesWrite && second != backends.DoesWrite {
				assert.Empty(t, found)
			} else {
				require.Len(t, found, 1)
				assert.Equal(t, []string{"second", "first"}, []string{found[0].Used.Name, found[0].Earlier.Name})
				assert.Equal(t, []backends.Writes{second, first}, []backends.Writes{found[0].Used.Writes, found[0].Earlier.Writes})
				assert.Equal(t, 109, found[0].Offset)
				assert.NotZero(t, found[0].Earlier.Moment.Stack)
				assert.Zero(t, found[0].Freed)
			}
			fake.to.Over(1)
			fake.to.Over(6)
			release(t, m)
			found, _ = c.Look()
			assert.Empty(t, found)
		}
	}
}

func TestWorkThatWasRefusedIsNone(t *testing.T) {
	r, fake, c := observedWorld(t)
	m := memoryOf(t, r, 100)
	at := m.Region().Address
	number := fake.enqueue(1, "refused", touch(at, 100, backends.DoesWrite))
	fake.to.Refused(1, number)
	fake.enqueue(2, "copy", touch(at, 100, backends.DoesWrite))
	found, _ := c.Found()
	assert.Empty(t, found)
	release(t, m)
}

func TestOthersMemoryIsLookedAtWhileItIsLent(t *testing.T) {
	r, fake, c := observedWorld(t)
	ours := memoryOf(t, r, 100)
	at := ours.Region()
	lent, err := r.Adopt(at, 100, 0, nil)
	require.NoError(t, err)
	again, err := r.Adopt(at, 50, 0, nil)
	require.NoError(t, err)
	fake.enqueue(1, "first", touch(at.Address+60, 10, backends.DoesWrite))
	fake.enqueue(2, "second", touch(at.Address+60, 10, backends.DoesWrite))
	found, _ := c.Found()
	assert.Len(t, found, 2, "ours, and what is lent of it")
	require.NoError(t, lent.Release())
	fake.enqueue(3, "third", touch(at.Address+60, 10, backends.DoesWrite))
	found, _ = c.Found()
	assert.Len(t, found, 1)
	require.NoError(t, again.Release())
	fake.to.Over(1)
	fake.to.Over(2)
	fake.to.Over(3)
	release(t, ours)
}

// TestWhatWasUnderWayWhenMemoryWasLentCounts has its owner write to it, and lend it then.
func TestWhatWasUnderWayWhenMemoryWasLentCounts(t *testing.T) {
	r, fake, c := observedWorld(t)
	release(t, memoryOf(t, r, 8))
	c.Look()
	const at = 0x7000_0000_0000
	fake.enqueue(1, "write", touch(at, 100, backends.DoesWrite))
	fake.enqueue(2, "write elsewhere", touch(at+100, 100, backends.DoesWrite))
	fake.enqueue(3, "old write", touch(at, 100, backends.DoesWrite))
	fake.to.Over(3)
	number := fake.enqueue(4, "refused", touch(at+300, 100, backends.DoesWrite))
	fake.to.Refused(4, number)
	for range 200 {
		fake.enqueue(2, "kernel elsewhere", touch(at+200, 1, backends.MayWrite))
	}
	lent, err := r.Adopt(backends.Region{Address: at, Allocator: backends.CUDA, Device: 0}, 100, 0, nil)
	require.NoError(t, err)
	fake.enqueue(5, "read", touch(at+10, 10, backends.OnlyReads))
	found, _ := c.Found()
	require.Len(t, found, 1)
	assert.Equal(t, []string{"read", "write"}, []string{found[0].Used.Name, found[0].Earlier.Name})
	require.NoError(t, lent.Release())
	lent, err = r.Adopt(backends.Region{Address: at + 300, Allocator: backends.CUDA, Device: 0}, 100, 0, nil)
	require.NoError(t, err)
	fake.enqueue(5, "read", touch(at+310, 10, backends.OnlyReads))
	found, _ = c.Found()
	assert.Empty(t, found)
	require.NoError(t, lent.Release())
}

func TestWhoCannotObserveSaysWhy(t *testing.T) {
	r, fake, c := observedWorld(t)
	fake.failure = errors.New("there is a profiler")
	m := memoryOf(t, r, 100)
	assert.Equal(t, map[string]error{"cuda": fake.failure}, c.Observed())
	assert.Nil(t, fake.to)
	release(t, m)
	var none *gobuffer.Checker
	assert.Nil(t, none.Observed())
	none.AskStacks(nil)
}

func TestObservingEndsWithTheCheck(t *testing.T) {
	r, fake, c := observedWorld(t)
	assert.Empty(t, c.Observed())
	m := memoryOf(t, r, 100)
	assert.Equal(t, map[string]error{"cuda": nil}, c.Observed())
	c.Stop()
	c.Stop()
	assert.Equal(t, 1, fake.stopped)
	release(t, m)
	m = memoryOf(t, r, 100)
	assert.Empty(t, c.Observed())
	release(t, m)
}

// TestAStackThatNobodyHasIsAskedFor has a thread that let go of what its stack could be told by.
func TestAStackThatNobodyHasIsAskedFor(t *testing.T) {
	fake := &observedFake{Fake: backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Space: backends.SpaceCUDA,
		Reuses: true})}
	require.NoError(t, fake.Probe())
	r, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	c, err := r.Check(muchKept, nil)
	require.NoError(t, err)
	defer c.Stop()
	asked := []int{}
	c.AskStacks(func(thread int) int64 {
		asked = append(asked, thread)
		return 77
	})
	m := memoryOf(t, r, 100)
	at := m.Region().Address
	fake.enqueue(1, "in order", touch(at, 1, backends.OnlyReads))
	assert.Empty(t, asked, "of what is wrong alone")
	release(t, m)
	fake.enqueue(1, "late", touch(at, 1, backends.OnlyReads))
	found, _ := c.Found()
	require.Len(t, found, 1)
	assert.Equal(t, []int{found[0].Used.Moment.Thread}, asked)
	assert.EqualValues(t, 77, found[0].Used.Moment.Stack)
}

// TestManyThreadsTellOfWork has them allocate, free and use memory, each its own, which nobody may take for another's.
func TestManyThreadsTellOfWork(t *testing.T) {
	r, fake, c := observedWorld(t)
	release(t, memoryOf(t, r, 8))
	var threads sync.WaitGroup
	for thread := range 8 {
		threads.Add(1)
		go func() {
			defer threads.Done()
			q := backends.Queue(thread + 1)
			for range 200 {
				m, err := r.Allocate(backends.CUDA, 0, 64, 0, false)
				if !assert.NoError(t, err) {
					return
				}
				fake.enqueue(q, "own", touch(m.Region().Address, 64, backends.DoesWrite))
				fake.to.Record(backends.Event(q), q)
				fake.to.Over(q)
				assert.NoError(t, m.Release())
			}
		}()
	}
	threads.Wait()
	found, more := c.Look()
	assert.Empty(t, found)
	assert.Zero(t, more)
}
