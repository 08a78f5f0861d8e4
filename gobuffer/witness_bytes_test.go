package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// TestWhichBytesWorkHasInCommon has two pieces of work on two streams, of 1,000 bytes.
func TestWhichBytesWorkHasInCommon(t *testing.T) {
	const writes, reads, kernel = backends.DoesWrite, backends.OnlyReads, backends.MayWrite
	rows := func(at, size, pitch, width int) backends.Touch {
		return backends.Touch{Address: backends.Address(at), Size: size, Writes: writes, Pitch: pitch, Width: width}
	}
	solid := func(at, size int, w backends.Writes) backends.Touch { return touch(backends.Address(at), size, w) }
	for _, c := range []struct {
		why   string
		a, b  backends.Touch
		wrong bool
	}{
		{"all of it", solid(0, 1000, writes), solid(0, 1000, reads), true},
		{"one byte", solid(0, 501, writes), solid(500, 500, reads), true},
		{"halves", solid(0, 500, writes), solid(500, 500, reads), false},
		{"nothing", solid(0, 1000, writes), solid(500, 0, writes), false},
		{"left and right columns", rows(0, 950, 100, 50), rows(50, 950, 100, 50), false},
		{"columns with one in common", rows(0, 951, 100, 51), rows(50, 950, 100, 50), true},
		{"columns that go around", rows(60, 850, 100, 50), rows(0, 910, 100, 10), true},
		{"columns that come earlier", rows(250, 650, 100, 50), rows(0, 950, 100, 50), false},
		{"rows apart otherwise, of which nobody knows", rows(0, 950, 100, 50), rows(50, 900, 90, 30), false},
		{"gaps of which nobody knows", rows(0, 950, 1, 0), solid(0, 1000, reads), false},
		{"a run within a gap", rows(0, 950, 100, 50), solid(150, 50, reads), false},
		{"a run that reaches out of a gap", rows(0, 950, 100, 50), solid(150, 51, reads), true},
		{"a long run", solid(350, 200, reads), rows(0, 950, 100, 50), true},
		{"a kernel that has the whole, beside all of it", solid(0, 1000, writes), solid(0, 1, kernel), true},
		{"a kernel that has the whole, beside a part", solid(0, 500, writes), solid(0, 1, kernel), false},
		{"a kernel that has the whole, beside rows", rows(0, 1000, 100, 50), solid(0, 1, kernel), false},
		{"a kernel that has a part", solid(400, 200, writes), solid(500, 1, kernel), true},
		{"a kernel that has another part", solid(0, 500, writes), solid(500, 1, kernel), false},
		{"two kernels", solid(0, 1, kernel), solid(0, 1, kernel), false},
	} {
		r, fake, checker := observedWorld(t)
		m := memoryOf(t, r, 1000)
		for _, both := range [][2]backends.Touch{{c.a, c.b}, {c.b, c.a}} {
			for i, each := range both {
				each.Address += m.Region().Address
				fake.enqueue(backends.Queue(i+1), c.why, each)
			}
			found, _ := checker.Found()
			assert.Equal(t, c.wrong, len(found) > 0, "%s: %v", c.why, found)
			fake.to.Over(1)
			fake.to.Over(2)
			m2 := memoryOf(t, r, 1000) // each thing is told of memory once
			release(t, m)
			m = m2
		}
		release(t, m)
	}
}

func TestNoBytesAreNoUseOfFreedMemory(t *testing.T) {
	r, fake, c := observedWorld(t)
	m := memoryOf(t, r, 1000)
	at := m.Region().Address
	release(t, m)
	fake.enqueue(1, "nothing", touch(at, 0, backends.DoesWrite))
	found, _ := c.Found()
	assert.Empty(t, found)
}

// TestAKernelsEndIsNoUseOfWhatBeginsThere has the end of lent memory as one of its parameters, behind its begin.
func TestAKernelsEndIsNoUseOfWhatBeginsThere(t *testing.T) {
	r, fake, c := observedWorld(t)
	at := backends.Region{Address: 0x70000000, Allocator: backends.CUDA, Device: 0}
	next := backends.Region{Address: at.Address + 1000, Allocator: backends.CUDA, Device: 0}
	first, err := r.Adopt(at, 1000, 0, nil)
	require.NoError(t, err)
	second, err := r.Adopt(next, 1000, 0, nil)
	require.NoError(t, err)
	begin, end := touch(at.Address, 1, backends.MayWrite), touch(next.Address, 1, backends.MayWrite)
	fake.enqueue(1, "fill", touch(next.Address, 1000, backends.DoesWrite))
	fake.enqueue(2, "begin, count, end, end", begin, touch(7, 1, backends.MayWrite), end, end)
	found, _ := c.Found()
	assert.Empty(t, found)
	fake.enqueue(2, "end, begin", end, begin)
	found, _ = c.Found()
	assert.Len(t, found, 1)
	release(t, first)
	release(t, second)
}

func TestMemoryThatIsUnmappedIsKnownNoLonger(t *testing.T) {
	r, fake, c := observedWorld(t)
	at := backends.Region{Address: 0x70000000, Allocator: backends.CUDA, Device: 0}
	for range 3 {
		m, err := gobuffer.AdoptMapping(r, at, 4096, func() error { return nil })
		require.NoError(t, err)
		assert.Equal(t, 1, gobuffer.Known(c))
		require.NoError(t, m.Release())
	}
	assert.Zero(t, gobuffer.Known(c))
	fake.enqueue(1, "one", touch(at.Address, 4096, backends.DoesWrite))
	fake.enqueue(2, "another", touch(at.Address, 4096, backends.DoesWrite))
	found, _ := c.Found()
	assert.Empty(t, found)
}

// TestAnEarlierLifeOfLentMemoryIsOver has somebody free it on one stream and be given it on another, as the driver puts
// in order; what used it since counts, with its moment.
func TestAnEarlierLifeOfLentMemoryIsOver(t *testing.T) {
	r, fake, c := observedWorld(t)
	release(t, memoryOf(t, r, 10)) // observing has begun
	at := backends.Region{Address: 0x70000000, Allocator: backends.CUDAAsync, Device: 0}
	whole := touch(at.Address, 4096, backends.DoesWrite)
	for _, made := range []bool{true, false} {
		fake.enqueue(1, "earlier", whole)
		if made {
			fake.to.Made(at.Address+4095, 1)
		}
		fake.to.Made(at.Address+4096, 100)
		m, err := r.Adopt(at, 4096, 0, nil)
		require.NoError(t, err)
		fake.enqueue(2, "later", whole)
		found, _ := c.Found()
		if made {
			assert.Empty(t, found)
		} else if assert.Len(t, found, 1) {
			assert.NotZero(t, found[0].Earlier.Moment.Time)
		}
		release(t, m)
		fake.to.Over(1)
		fake.to.Over(2)
	}
}
