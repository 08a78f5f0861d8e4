package bridge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// shelf is a table with memory of a device in it, and two streams.
type shelf struct {
	table
	t       *testing.T
	runtime *gobuffer.Runtime
	ending  backends.Stream
	other   backends.Stream
}

func newShelf(t *testing.T) *shelf {
	fake := backendtest.NewFake(backendtest.FakeOptions{Manual: true})
	runtime, err := gobuffer.NewRuntime(host.New(), fake)
	require.NoError(t, err)
	require.NoError(t, fake.Probe())
	s := &shelf{t: t, runtime: runtime}
	s.ending, err = fake.NewStream(0)
	require.NoError(t, err)
	s.other, err = fake.NewStream(0)
	require.NoError(t, err)
	t.Cleanup(func() { fake.AssertClean(t) })
	return s
}

func (s *shelf) memory(stream backends.Stream) *gobuffer.Memory {
	m, err := s.runtime.Allocate(backends.CUDA, 0, 8, stream, false)
	require.NoError(s.t, err)
	return m
}

func (s *shelf) drop(token uint64) {
	m, err := s.take(token)
	require.NoError(s.t, err)
	require.NoError(s.t, m.Release())
}

// Between the steps of a search other calls reach the table.
func TestASearchForAStreamsMemoryLetsOthersIn(t *testing.T) {
	s := newShelf(t)
	filler := s.memory(s.other)
	defer filler.Release()
	var list []uint64
	for range 3 * mostAtOnce {
		list = append(list, s.put(filler.Retain()))
	}
	uses := s.memory(s.ending)
	last := s.put(uses)
	search := s.search(s.ending)
	steps := 0
	for search.step() {
		steps++
		s.drop(list[0])
		list = list[1:]
		list = append(list, s.put(filler.Retain()))
		m, err := s.get(last)
		require.NoError(t, err)
		require.NoError(t, m.Release())
	}
	assert.GreaterOrEqual(t, steps, 3)
	assert.Equal(t, []*gobuffer.Memory{uses}, search.found)
	require.NoError(t, uses.Release())
	for _, token := range append(list, last) {
		s.drop(token)
	}
	assert.Empty(t, s.searches)
}

// What gets another token meanwhile is found, wherever the token is.
func TestASearchFindsMemoryThatMoves(t *testing.T) {
	for round := range 300 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		s := newShelf(t)
		filler := s.memory(s.other)
		var fillers, moving []uint64
		for range random.IntN(4*mostAtOnce) + 1 {
			fillers = append(fillers, s.put(filler.Retain()))
		}
		const many = 5
		var want []*gobuffer.Memory
		for range many {
			m := s.memory(s.ending)
			want = append(want, m)
			moving = append(moving, s.put(m))
		}
		searches := []*search{s.search(s.ending)}
		for len(searches) > 0 {
			if random.IntN(10) == 0 && len(searches) < 3 {
				searches = append(searches, s.search(s.ending))
			}
			for range random.IntN(20) {
				// A place of any age becomes free, and the newest is taken first.
				i := random.IntN(len(fillers))
				s.drop(fillers[i])
				j := random.IntN(many)
				again := s.put(want[j].Retain())
				s.drop(moving[j])
				moving[j] = again
				fillers[i] = s.put(filler.Retain())
			}
			i := random.IntN(len(searches))
			if searches[i].step() {
				continue
			}
			for _, m := range want {
				require.Contains(t, searches[i].found, m, "round %d, seed %d", round, seed)
			}
			for _, m := range searches[i].found {
				require.NoError(t, m.Release())
			}
			searches = slices.Delete(searches, i, i+1)
		}
		for _, token := range append(fillers, moving...) {
			s.drop(token)
		}
		require.NoError(t, filler.Release())
		require.Empty(t, s.searches)
	}
}
