package pool

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// The handles of the streams that newPool makes.
const (
	first   backends.Stream = 1 + iota // lasting
	second                             // lasting
	foreign                            // of another library
)

func newPool(t testing.TB, keep int) (*Pool, *fakeSource) {
	f := newFake(t)
	f.stream(first, true)
	f.stream(second, true)
	f.stream(foreign, false)
	return New(f, keep), f
}

func (p *Pool) mustTake(t testing.TB, f *fakeSource, size int, s backends.Stream) backends.Address {
	t.Helper()
	at, err := p.Take(size, s)
	require.NoError(t, err)
	_, bytes, _ := p.Find(at)
	f.took(at, bytes, f.streams[s])
	return at
}

// workAndGiveBack gives memory back that a stream still uses.
func (p *Pool) workAndGiveBack(t testing.TB, f *fakeSource, at backends.Address, s backends.Stream) {
	t.Helper()
	if s != backends.EveryStream {
		f.works(at, f.streams[s])
	}
	delete(f.lent, at)
	ours, err := p.GiveBack(at, s)
	require.True(t, ours)
	require.NoError(t, err)
}

const plenty = 1 << 40

func TestTheSameStreamHasItAtOnce(t *testing.T) {
	for _, size := range []int{1, 1000, LargestSmall, LargestSmall + 1, 64 << 20} {
		p, f := newPool(t, plenty)
		at := p.mustTake(t, f, size, first)
		p.workAndGiveBack(t, f, at, first)
		calls := len(f.calls)
		assert.Equal(t, at, p.mustTake(t, f, size, first))
		assert.Len(t, f.calls, calls, "the driver is not asked")
		assert.Equal(t, 1, f.calls["Allocate"])
	}
}

func TestAnotherStreamHasItOnceTheWorkIsDone(t *testing.T) {
	for _, from := range []backends.Stream{first, foreign} {
		for _, to := range []backends.Stream{second, backends.EveryStream} {
			p, f := newPool(t, plenty)
			at := p.mustTake(t, f, Segment, from)
			p.workAndGiveBack(t, f, at, from)
			assert.NotEqual(t, at, p.mustTake(t, f, Segment, to))
			f.rest()
			assert.Equal(t, at, p.mustTake(t, f, Segment, to))
		}
	}
}

func TestLaterWorkIsNotWaitedFor(t *testing.T) {
	p, f := newPool(t, plenty)
	at := p.mustTake(t, f, Segment, first)
	p.workAndGiveBack(t, f, at, first)
	p.mustTake(t, f, Segment, second) // which has made an event
	s := f.streams[first]
	s.run(s.queued)
	s.queued += 5
	assert.Equal(t, at, p.mustTake(t, f, Segment, second))
}

func TestAForeignHandleMayBeAnotherStreams(t *testing.T) {
	p, f := newPool(t, plenty)
	at := p.mustTake(t, f, Segment, foreign)
	p.workAndGiveBack(t, f, at, foreign)
	f.stream(foreign, false)
	assert.Equal(t, at, p.mustTake(t, f, Segment, foreign), "which waits for the first")
	assert.Equal(t, 1, f.calls["Wait"])
}

func TestStreamsEnd(t *testing.T) {
	p, f := newPool(t, plenty)
	at := p.mustTake(t, f, Segment, second)
	other := p.mustTake(t, f, 1000, second)
	p.workAndGiveBack(t, f, at, second)
	p.workAndGiveBack(t, f, other, second)
	p.EndStream(second)
	f.stream(second, true)
	assert.NotEqual(t, at, p.mustTake(t, f, Segment, second), "a new stream of the same handle")
	f.rest()
	assert.Equal(t, at, p.mustTake(t, f, Segment, second))
	p.EndStream(99)
	p.EndStream(foreign)
}

func TestAnEndThatCannotBeRecorded(t *testing.T) {
	p, f := newPool(t, plenty)
	at := p.mustTake(t, f, Segment, second)
	p.workAndGiveBack(t, f, at, second)
	f.fail = func(call string) bool { return call == "Record" }
	p.EndStream(second)
	delete(f.streams, second)
	f.fail = nil
	f.rest()
	assert.NotEqual(t, at, p.mustTake(t, f, Segment, first), "nobody can tell that it is over")
	require.NoError(t, p.Trim())
	assert.NotContains(t, f.memory, at)
}

func TestSmallSizesShareASegment(t *testing.T) {
	p, f := newPool(t, plenty)
	var held []backends.Address
	for range Segment / 1024 {
		held = append(held, p.mustTake(t, f, 1000, first))
	}
	assert.Equal(t, 1, f.calls["Allocate"])
	rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	for _, at := range held {
		p.workAndGiveBack(t, f, at, first)
	}
	p.mustTake(t, f, LargestSmall, first)
	p.mustTake(t, f, LargestSmall, first)
	assert.Equal(t, 1, f.calls["Allocate"], "they have become one again")
	p.check(t)
}

func TestLargeOnesAreSplit(t *testing.T) {
	p, f := newPool(t, plenty)
	whole := p.mustTake(t, f, 10*Segment, first)
	p.workAndGiveBack(t, f, whole, first)
	low, high := p.mustTake(t, f, 3*Segment, first), p.mustTake(t, f, 7*Segment-5, first)
	assert.Equal(t, []backends.Address{whole, whole + 3*Segment}, []backends.Address{low, high})
	p.mustTake(t, f, 1000, first)
	assert.Equal(t, 2, f.calls["Allocate"], "small ones are not cut from large ones")
	p.workAndGiveBack(t, f, low, first)
	p.workAndGiveBack(t, f, high, first)
	assert.Equal(t, whole, p.mustTake(t, f, 10*Segment, first))
}

func TestTheSmallestThatIsLargeEnough(t *testing.T) {
	p, f := newPool(t, plenty)
	var held []backends.Address
	for _, size := range []int{9, 4, 6} {
		held = append(held, p.mustTake(t, f, size*Segment, first))
	}
	for _, at := range held {
		p.workAndGiveBack(t, f, at, first)
	}
	assert.Equal(t, held[2], p.mustTake(t, f, 5*Segment, first))
}

func TestNoMoreIsKeptThanMayBe(t *testing.T) {
	p, f := newPool(t, 5*Segment)
	var held []backends.Address
	for range 8 {
		held = append(held, p.mustTake(t, f, Segment, first))
	}
	for _, at := range held {
		p.workAndGiveBack(t, f, at, first)
	}
	assert.Equal(t, 5*Segment, f.reserved())
	assert.NotContains(t, f.memory, held[0], "what was not used for longest goes first")
	assert.Contains(t, f.memory, held[7])
	p, f = newPool(t, 0)
	p.workAndGiveBack(t, f, p.mustTake(t, f, 10, first), first)
	assert.Zero(t, f.reserved())
}

func TestWhatIsOutOfReachIsNotGivenToTheDriver(t *testing.T) {
	p, f := newPool(t, 0)
	f.streams[foreign].elsewhere = true
	at := p.mustTake(t, f, Segment, foreign)
	p.workAndGiveBack(t, f, at, foreign)
	require.NoError(t, p.Trim())
	assert.Contains(t, f.memory, at)
	f.streams[foreign].run(1)
	require.NoError(t, p.Trim())
	assert.Empty(t, f.memory)
}

func TestAFullDevice(t *testing.T) {
	p, f := newPool(t, plenty)
	f.capacity = 3*Segment + 4096
	large := p.mustTake(t, f, 3*Segment, first)
	p.mustTake(t, f, 1000, first) // a segment does not fit any more
	p.workAndGiveBack(t, f, large, first)
	at := p.mustTake(t, f, 4096-1024, second) // the driver has room for it
	_, err := p.Take(4*Segment, first)
	assert.ErrorIs(t, err, errFull)
	p.workAndGiveBack(t, f, at, second)
	f.capacity = 3*Segment + 2048
	p.mustTake(t, f, LargestSmall, second)
	assert.NotContains(t, f.memory, large, "what was kept is given back before there is an error")
	p.check(t)
}

func TestLimit(t *testing.T) {
	p, f := newPool(t, plenty)
	p.SetLimit(3 * Segment)
	at := p.mustTake(t, f, 2*Segment, first)
	_, err := p.Take(2*Segment, first)
	var limited *LimitError
	require.ErrorAs(t, err, &limited)
	assert.EqualError(t, err, "the limit is 6291456 bytes, of which 4194304 are taken: 4194304 more are not allowed")
	p.workAndGiveBack(t, f, at, first)
	p.mustTake(t, f, 3*Segment, second)
	assert.NotContains(t, f.memory, at, "what nobody uses makes room")
	p.SetLimit(NoLimit)
	p.mustTake(t, f, 20*Segment, first)
}

func TestWhatIsNotLent(t *testing.T) {
	p, f := newPool(t, plenty)
	ours, err := p.GiveBack(5000, first)
	assert.False(t, ours)
	require.NoError(t, err)
	at := p.mustTake(t, f, 1000, first)
	for _, s := range []backends.Stream{first, foreign} {
		p.workAndGiveBack(t, f, at, s)
		ours, err = p.GiveBack(at, s)
		assert.True(t, ours)
		assert.ErrorIs(t, err, ErrNotLent)
		at = p.mustTake(t, f, 1000, s)
	}
	_, size, ours := p.Find(at + 1024)
	assert.True(t, ours && size == 0, "nobody has it")
	_, _, ours = p.Find(at + Segment)
	assert.False(t, ours)
	_, _, ours = p.Find(1)
	assert.False(t, ours)
}

func TestMemoryThatTheDriverDoesNotTakeBack(t *testing.T) {
	p, f := newPool(t, 0)
	at := p.mustTake(t, f, Segment, first)
	f.fail = func(call string) bool { return call == "Free" }
	f.works(at, f.streams[first])
	delete(f.lent, at)
	ours, err := p.GiveBack(at, first)
	assert.True(t, ours)
	assert.ErrorIs(t, err, errFault)
	assert.NotEqual(t, at, p.mustTake(t, f, Segment, second), "work on it may be pending")
	f.fail = nil
	require.NoError(t, p.Trim())
	assert.NotContains(t, f.memory, at)
}

// during does something while the device is waited for.
type during struct {
	*fakeSource
	do func()
}

func (d *during) Synchronize() error {
	err := d.fakeSource.Synchronize()
	d.do()
	return err
}

func TestAWaitDoesNotSpeakForWhatComesBackMeanwhile(t *testing.T) {
	for _, s := range []backends.Stream{first, backends.EveryStream} {
		_, f := newPool(t, plenty)
		d := &during{fakeSource: f}
		p := New(d, plenty)
		at, beside := p.mustTake(t, f, 1000, first), p.mustTake(t, f, 1000, first)
		d.do = func() {
			f.works(at, f.streams[first])
			p.workAndGiveBack(t, f, at, s)
			p.mustTake(t, f, 9*Segment, second)
		}
		require.NoError(t, p.Trim())
		assert.NotEqual(t, at, p.mustTake(t, f, 1000, second))
		_ = beside
	}
}

func TestATrimThatCannotWait(t *testing.T) {
	p, f := newPool(t, plenty)
	require.NoError(t, p.Trim())
	assert.Empty(t, f.calls, "there is nothing to wait for")
	at := p.mustTake(t, f, 1000, first)
	p.workAndGiveBack(t, f, at, backends.EveryStream)
	f.fail = func(call string) bool { return call == "Synchronize" }
	assert.ErrorIs(t, p.Trim(), errFault)
	assert.Len(t, f.memory, 1)
}

func TestStatistics(t *testing.T) {
	p, f := newPool(t, plenty)
	a, b := p.mustTake(t, f, 1000, first), p.mustTake(t, f, 3*Segment, first)
	assert.Equal(t, Statistics{Reserved: 4 * Segment, MostReserved: 4 * Segment, Lent: 1024 + 3*Segment,
		Cached: Segment - 1024, LargestFree: Segment - 1024, Misses: 2}, p.Statistics())
	p.workAndGiveBack(t, f, a, first)
	p.workAndGiveBack(t, f, b, first)
	p.mustTake(t, f, 1000, first)
	s := p.Statistics()
	assert.Equal(t, []int{1024, 4*Segment - 1024, 3 * Segment}, []int{s.Lent, s.Cached, s.LargestFree})
	assert.EqualValues(t, 1, s.Hits)
	require.NoError(t, p.Trim())
	assert.Equal(t, 4*Segment, p.Statistics().MostReserved)
	assert.Equal(t, Segment, p.Statistics().Reserved)
}

func TestManyGoroutines(t *testing.T) {
	p, f := newPool(t, 20*Segment)
	owners := [8]map[backends.Address]bool{}
	var group sync.WaitGroup
	for g := range owners {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 2))
			var held []backends.Address
			for round := range 3000 {
				if s := backends.Stream(1 + random.IntN(3)); len(held) < 20 && random.IntN(2) == 0 {
					at, err := p.Take(1+random.IntN(1<<random.IntN(23)), s)
					if !assert.NoError(t, err) {
						return
					}
					held = append(held, at)
				} else if len(held) > 0 {
					ours, err := p.GiveBack(held[0], s)
					if !assert.True(t, ours && err == nil) {
						return
					}
					held = held[1:]
				}
				if round%500 == 0 {
					assert.NoError(t, p.Trim())
					p.Statistics()
				}
			}
			for _, at := range held {
				_, _ = p.GiveBack(at, first)
			}
		})
	}
	group.Wait()
	p.check(t)
	f.rest()
	require.NoError(t, p.Trim())
	assert.Zero(t, p.Statistics().Reserved)
	assert.Empty(t, f.memory)
	assert.Empty(t, f.events)
}
