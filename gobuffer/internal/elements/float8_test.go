package elements

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
)

// A definition is what ml_dtypes' documentation says of a type.
type definition struct {
	exponent, mantissa, bias int
	infinity                 uint8 // 0 for types without
	nans                     uint8 // the first
	noNegativeZero           bool
	tooLarge, nan            uint8 // what a number too large, and NaN, become
	largest                  float64
}

var definitions = map[ai.ElementType]definition{
	ai.Float8E3M4:        {3, 4, 3, 0x70, 0x71, false, 0x70, 0x78, 15.5},
	ai.Float8E4M3:        {4, 3, 7, 0x78, 0x79, false, 0x78, 0x7c, 240},
	ai.Float8E4M3B11FNUZ: {4, 3, 11, 0, 0x80, true, 0x80, 0x80, 30},
	ai.Float8E4M3FN:      {4, 3, 7, 0, 0x7f, false, 0x7f, 0x7f, 448},
	ai.Float8E4M3FNUZ:    {4, 3, 8, 0, 0x80, true, 0x80, 0x80, 240},
	ai.Float8E5M2:        {5, 2, 15, 0x7c, 0x7d, false, 0x7c, 0x7e, 57344},
	ai.Float8E5M2FNUZ:    {5, 2, 16, 0, 0x80, true, 0x80, 0x80, 57344},
}

func (d definition) decode(code uint8) float64 {
	sign, magnitude := 1-2*float64(code>>7), code&0x7f
	switch {
	case d.noNegativeZero && code == d.nans, !d.noNegativeZero && magnitude >= d.nans:
		return math.NaN()
	case d.infinity != 0 && magnitude == d.infinity:
		return sign * math.Inf(1)
	}
	exponent, m := int(magnitude)>>d.mantissa, float64(magnitude&(1<<d.mantissa-1))
	if exponent == 0 {
		return sign * math.Ldexp(m, 1-d.bias-d.mantissa)
	}
	return sign * math.Ldexp(m+math.Ldexp(1, d.mantissa), exponent-d.bias-d.mantissa)
}

// positive lists the numbers from zero up, and after them the one that one more
// step would give.
func (d definition) positive() (list []float64) {
	for code := range 0x80 {
		v := d.decode(uint8(code))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			break
		}
		list = append(list, v)
	}
	return append(list, 2*list[len(list)-1]-list[len(list)-2])
}

// nearest searches the list for the nearest number, of two the even one.
func (d definition) nearest(v float64, positive []float64) uint8 {
	sign := uint8(0)
	if math.Signbit(v) {
		sign = 0x80
	}
	if d.noNegativeZero && (math.IsNaN(v) || math.Abs(v) >= positive[len(positive)-1]) {
		return 0x80
	}
	if math.IsNaN(v) {
		return sign | d.nan
	}
	v = math.Abs(v)
	if v >= positive[len(positive)-1] {
		return sign | d.tooLarge
	}
	code := sort.SearchFloat64s(positive, v)
	if code > 0 {
		down, up := v-positive[code-1], positive[code]-v
		if down < up || down == up && code%2 == 1 {
			code--
		}
	}
	switch {
	case code == len(positive)-1 && d.noNegativeZero:
		return d.tooLarge
	case code == len(positive)-1:
		return sign | d.tooLarge
	case code == 0 && d.noNegativeZero:
		return 0
	}
	return sign | uint8(code)
}

// float32Bits has all signs, exponents and leading mantissa bits, before rests that
// are nothing, little, about a half, and almost one.
func float32Bits(visit func(bits uint32)) {
	for high := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			visit(high<<16 | low)
		}
	}
}

func float8s() map[ai.ElementType]*float8 {
	found := map[ai.ElementType]*float8{}
	for _, t := range ai.Types() {
		if f := rules[t].float8; f != nil {
			found[t] = f
		}
	}
	return found
}

func TestFloat8EveryCode(t *testing.T) {
	for e, d := range definitions {
		f, largest := rules[e].float8, 0.0
		for code := range 256 {
			got, want := float64(f.values[code]), d.decode(uint8(code))
			require.Equal(t, uint32(code>>7), math.Float32bits(f.values[code])>>31, "%s %#x", e, code)
			if math.IsNaN(want) {
				require.True(t, math.IsNaN(got), "%s %#x", e, code)
				continue
			}
			require.Equal(t, want, got, "%s %#x", e, code)
			require.Equal(t, uint8(code), f.encode(math.Float32bits(f.values[code])), "%s %v", e, got)
			if !math.IsInf(got, 0) {
				largest = max(largest, got)
			}
		}
		require.Equal(t, d.largest, largest)
	}
}

func TestFloat8RoundsToNearestEven(t *testing.T) {
	for e, d := range definitions {
		f, positive := rules[e].float8, d.positive()
		check := func(bits uint32) {
			v := float64(math.Float32frombits(bits))
			if want, got := d.nearest(v, positive), f.encode(bits); want != got {
				require.Equal(t, want, got, "%s of %x, %#x", e, v, bits)
			}
		}
		float32Bits(check)
		random := rand.New(rand.NewPCG(1, uint64(e)))
		for range 100_000 {
			check(random.Uint32())
		}
		for i := range positive[1:] {
			middle := float32((positive[i] + positive[i+1]) / 2)
			for _, v := range []float32{middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, math.MaxFloat32)} {
				check(math.Float32bits(v))
				check(math.Float32bits(-v))
			}
		}
	}
}

func TestFloat8OfPowers(t *testing.T) {
	f := rules[ai.Float8E8M0FNU].float8
	for code := range 255 {
		require.Equal(t, math.Ldexp(1, code-127), float64(f.values[code]))
		require.Equal(t, uint8(code), f.encode(math.Float32bits(f.values[code])))
	}
	require.Equal(t, uint32(0x7fc00000), math.Float32bits(f.values[255]))
	float32Bits(func(bits uint32) {
		v := float64(math.Float32frombits(bits))
		want := uint8(0xff)
		if v > 0 && v < 1.5*0x1p127 {
			want = 0
			// A tie goes up, and so does all that is no normal float32.
			for p := 0x1p-127; v >= 1.5*p || v > p && v < 0x1p-126; p *= 2 {
				want++
			}
		}
		if got := f.encode(bits); want != got {
			require.Equal(t, want, got, "%x, %#x", v, bits)
		}
	})
}

func TestFloat8ManyAsOne(t *testing.T) {
	for e, f := range float8s() {
		var from []uint32
		var want []uint8
		float32Bits(func(bits uint32) {
			from, want = append(from, bits), append(want, f.encode(bits))
		})
		got := make([]uint8, len(from))
		require.NoError(t, Convert(at(got), e, at(bytesOf(from...)), ai.Float32, len(from)))
		require.Equal(t, want, got, e)
		few := make([]uint8, 100)
		require.NoError(t, Convert(at(few), e, at(bytesOf(from...)), ai.Float32, len(few)))
		require.Equal(t, want[:len(few)], few, e)
	}
}

// TestFloat8GoesThroughFloat32 is ml_dtypes' rule for every other type.
func TestFloat8GoesThroughFloat32(t *testing.T) {
	for e := range float8s() {
		for _, other := range ai.Types() {
			if other == e || other == ai.Float32 {
				continue
			}
			from := trickyValues(other)
			n := len(from) / other.Size()
			want, got, middle := make([]byte, n), make([]byte, n), make([]byte, 4*n)
			require.NoError(t, Convert(at(middle), ai.Float32, at(from), other, n))
			require.NoError(t, Convert(at(want), e, at(middle), ai.Float32, n))
			require.NoError(t, Convert(at(got), e, at(from), other, n))
			require.Equal(t, want, got, "%s to %s", other, e)

			codes := trickyValues(e)
			want, got = make([]byte, 256*other.Size()), make([]byte, 256*other.Size())
			middle = make([]byte, 4*256)
			require.NoError(t, Convert(at(middle), ai.Float32, at(codes), e, 256))
			require.NoError(t, Convert(at(want), other, at(middle), ai.Float32, 256))
			require.NoError(t, Convert(at(got), other, at(codes), e, 256))
			require.Equal(t, want, got, "%s to %s", e, other)
		}
	}
}

func TestFloat8RoundsTwice(t *testing.T) {
	// Halfway between 1 and 1.125, and more than halfway by what a float32 drops.
	v := bytesOf(1.0625 + 0x1p-40)
	code := []byte{0}
	require.NoError(t, Convert(at(code), ai.Float8E4M3FN, at(v), ai.Float64, 1))
	require.Equal(t, []byte{0x38}, code)
}
