package staging

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRandomParts moves parts of random sizes, of which chunks hold many or a piece of one.
func TestRandomParts(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		e := &Engine{Threads: 1 + random.IntN(4), Chunk: 1 + random.IntN(900)}
		e.Limit = e.Chunk * (1 + random.IntN(6))
		var parts Parts
		for range 1 + random.IntN(8) {
			parts = parts.Add(make([]byte, 1+random.IntN([]int{5, 600}[random.IntN(2)])))
		}
		d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, parts.Size())}
		want := make([]byte, parts.Size())
		for range 6 {
			if random.IntN(2) == 0 {
				for _, p := range parts {
					copy(p.Bytes, randomBytes(random, len(p.Bytes)))
					copy(want[p.Start:], p.Bytes)
				}
				require.NoError(t, e.UploadParts(d, parts))
				for _, p := range parts {
					clear(p.Bytes) // it has been read
				}
				continue
			}
			require.NoError(t, e.DownloadParts(d, parts))
			for i, p := range parts {
				require.True(t, bytes.Equal(want[p.Start:p.Start+len(p.Bytes)], p.Bytes), "seed %d, part %d", seed, i)
			}
		}
	}
}

func TestPartsBeginApart(t *testing.T) {
	parts := Parts(nil).Add(make([]byte, 1)).Add(make([]byte, 300)).Add(make([]byte, 7))
	assert.Equal(t, []int{0, 256, 768}, []int{parts[0].Start, parts[1].Start, parts[2].Start})
	assert.Equal(t, 775, parts.Size())
	assert.Zero(t, Parts(nil).Size())
	type seen struct{ part, from, to int }
	var got []seen
	parts.Each(100, 770, func(part, from, to int) { got = append(got, seen{part, from, to}) })
	assert.Equal(t, []seen{{1, 0, 300}, {2, 0, 2}}, got)
	parts.Each(556, 768, func(part, from, to int) { t.Error("there is nothing", part, from, to) })
}

func TestWhatIsGathered(t *testing.T) {
	for _, c := range []struct {
		engine      *Engine
		size, parts int
		gathered    bool
	}{
		{&Engine{Threads: 4}, 10, 2, true},
		{&Engine{Threads: 4}, 1 << 30, 2, true},
		{&Engine{Threads: 1}, 1 << 30, 2, true},
		{&Engine{Threads: -1}, 10, 2, false},
		{&Engine{Limit: -1}, 10, 2, false},
		{&Engine{}, 10, 2, true},
	} {
		assert.Equal(t, c.gathered, c.engine.Gathers(c.size, c.parts), "%+v", c.engine)
	}
}
