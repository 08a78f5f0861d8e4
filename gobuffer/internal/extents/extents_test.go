package extents

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// marks is the same room as a plain list of units: what has each, and when it was given back.
type marks struct {
	has   []int // the part's first unit, or -1
	since []uint64
}

// fits is the first run of free units, and when the last of the free ones around it was given back.
func (m *marks) fits(units int) (at int, since uint64, ok bool) {
	for begin := 0; begin < len(m.has); {
		end := begin
		var last uint64
		for end < len(m.has) && m.has[end] < 0 {
			last = max(last, m.since[end])
			end++
		}
		if end-begin >= units {
			return begin * Unit, last, true
		}
		begin = end + 1
	}
	return 0, 0, false
}

func (m *marks) longest() (free, largest int) {
	run := 0
	for _, has := range m.has {
		if run++; has >= 0 {
			run = 0
			continue
		}
		free += Unit
		largest = max(largest, run*Unit)
	}
	return free, largest
}

func TestWalksBesideAListOfUnits(t *testing.T) {
	for seed := range uint64(200) {
		choose := rand.New(rand.NewPCG(seed, 1))
		units := choose.IntN(40)
		room, plain := New(units*Unit), &marks{has: make([]int, units), since: make([]uint64, units)}
		for i := range plain.has {
			plain.has[i] = -1
		}
		held := map[int]int{}
		for when := uint64(1); when < 100; when++ {
			if size := choose.IntN(6 * Unit); choose.IntN(2) == 0 {
				need := max((size+Unit-1)/Unit, 1)
				at, since, ok := room.Fits(size)
				expected, last, possible := plain.fits(need)
				require.Equal(t, possible, ok, "seed %d", seed)
				if !ok {
					continue
				}
				require.Equal(t, expected, at, "seed %d", seed)
				require.GreaterOrEqual(t, since, last, "seed %d", seed)
				room.Take(at, size)
				held[at] = need
				for i := at / Unit; i < at/Unit+need; i++ {
					plain.has[i] = at
				}
			} else {
				for at, need := range held {
					room.Give(at, when)
					delete(held, at)
					for i := at / Unit; i < at/Unit+need; i++ {
						plain.has[i], plain.since[i] = -1, when
					}
					break
				}
			}
			free, largest := plain.longest()
			require.Equal(t, [2]int{free, largest}, [2]int{room.Free(), room.Largest()}, "seed %d", seed)
		}
	}
}

func TestSizesThatNoRoomHas(t *testing.T) {
	room := New(4 * Unit)
	for _, size := range []int{4*Unit + 1, math.MaxInt, math.MaxInt - Unit} {
		_, _, ok := room.Fits(size)
		assert.False(t, ok)
	}
	at, _, ok := room.Fits(4 * Unit)
	assert.True(t, ok)
	assert.Zero(t, at)
	none := New(0)
	_, _, ok = none.Fits(0)
	assert.False(t, ok)
}
