package elements

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
)

// decode16 is the definition of an IEEE binary format with so many mantissa bits.
func decode16(h uint16, mantissa int) float64 {
	sign := 1 - 2*float64(h>>15)
	bias := 1<<(14-mantissa) - 1
	exponent, m := int(h&0x7fff)>>mantissa, float64(h&(1<<mantissa-1))
	switch {
	case exponent == 2*bias+1 && m != 0:
		return math.NaN()
	case exponent == 2*bias+1:
		return sign * math.Inf(1)
	case exponent == 0:
		return sign * math.Ldexp(m, 1-bias-mantissa)
	}
	return sign * math.Ldexp(m+math.Ldexp(1, mantissa), exponent-bias-mantissa)
}

// positive16 lists the finite positive numbers of the format, and after them, in
// infinity's place, the number that one more step would give.
func positive16(mantissa int) []float64 {
	infinity := uint16(0x7fff) >> mantissa << mantissa
	var list []float64
	for h := range infinity {
		list = append(list, decode16(h, mantissa))
	}
	return append(list, 2*list[infinity-1]-list[infinity-2])
}

// nearest16 searches the list for the nearest number, of two the even one.
func nearest16(v float64, positive []float64) uint16 {
	sign, v := uint16(math.Float64bits(v)>>48&0x8000), math.Abs(v)
	infinity := len(positive) - 1
	above := uint16(sort.Search(infinity, func(h int) bool { return positive[h] >= v }))
	if above == 0 || math.IsInf(v, 1) {
		return sign | above
	}
	down, up := v-positive[above-1], positive[above]-v
	if down < up || down == up && above%2 == 1 {
		above--
	}
	return sign | above
}

func TestHalvesEveryValue(t *testing.T) {
	same := func(want, got float64, h uint16) {
		if math.Float64bits(want) != math.Float64bits(got) && !(math.IsNaN(want) && math.IsNaN(got)) {
			require.Equal(t, want, got, "%#x", h)
		}
	}
	for i := range 1 << 16 {
		h := uint16(i)
		f, b := Float16ToFloat32(h), BFloat16ToFloat32(h)
		same(decode16(h, 10), float64(f), h)
		same(decode16(h, 7), float64(b), h)
		require.Equal(t, h, Float32ToFloat16(f))
		if b == b {
			require.Equal(t, h, Float32ToBFloat16(b))
			require.Equal(t, h, Float64ToBFloat16(float64(b)))
		}
		if f == f {
			require.Equal(t, h, Float64ToFloat16(float64(f)))
		}
	}
}

func TestHalvesRoundToNearestEven(t *testing.T) {
	halves, brains := positive16(10), positive16(7)
	same := func(want, got uint16, of float64) {
		// require takes longer than all the rest, a million times over.
		if want != got {
			require.Equal(t, want, got, "of %x", of)
		}
	}
	check := func(v float64) {
		f := float32(v)
		same(nearest16(v, halves), Float64ToFloat16(v), v)
		same(nearest16(float64(f), halves), Float32ToFloat16(f), float64(f))
		same(nearest16(float64(f), brains), Float32ToBFloat16(f), float64(f))
		same(Float32ToBFloat16(f), Float64ToBFloat16(v), v)
	}
	for h := range halves[1:] {
		middle := (halves[h] + halves[h+1]) / 2
		for _, v := range []float64{middle, math.Nextafter(middle, 0), math.Nextafter(middle, 1e9)} {
			check(v)
			check(-v)
			f := float32(middle)
			check(float64(math.Nextafter32(f, 0)))
			check(float64(math.Nextafter32(f, 1e9)))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		check(math.Float64frombits(random.Uint64() &^ (1 << 62)))
		check(math.Ldexp(random.Float64()*2-1, random.IntN(60)-40))
		if f := math.Float32frombits(random.Uint32()); f == f {
			check(float64(f))
		}
	}
}

func TestHalvesOfNaN(t *testing.T) {
	require.Equal(t, uint16(0x7c01), Float32ToFloat16(math.Float32frombits(0x7f800001)))
	require.Equal(t, uint16(0xfe00), Float32ToFloat16(math.Float32frombits(0xffc00000)))
	require.Equal(t, uint16(0x7c01), Float64ToFloat16(math.Float64frombits(0x7ff0000000000001)))
	require.Equal(t, uint16(0xfe00), Float64ToFloat16(math.Float64frombits(0xfff8000000000000)))
	require.Equal(t, uint16(0x7fc0), Float64ToBFloat16(math.NaN()))
}
