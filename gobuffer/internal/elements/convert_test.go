package elements

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
)

func at(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func bytesOf[T any](values ...T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
}

// numpys are NumPy's types and bfloat16.
func numpys() (types []ai.ElementType) {
	for _, t := range ai.Types() {
		if rules[t].float8 == nil {
			types = append(types, t)
		}
	}
	return types
}

// printed makes every NaN equal, as the rules do but for Float16's payload.
func printed(b []byte, t ai.ElementType) []string {
	var texts []string
	for i := 0; i < len(b); i += t.Size() {
		s := load(at(b[i:]), t)
		text := s.String()
		if t.Kind() == ai.KindComplex {
			text = reprFloat(s.re, 64) + " " + reprFloat(s.im, 64)
		}
		texts = append(texts, text)
	}
	return texts
}

func TestConvertMatchesNumPy(t *testing.T) {
	text, err := os.ReadFile("testdata/numpy_casts.json")
	require.NoError(t, err)
	var cases []struct{ From, To, In, Out string }
	require.NoError(t, json.Unmarshal(text, &cases))
	require.Len(t, cases, len(numpys())*len(numpys()))
	for _, c := range cases {
		st, err := ai.ParseName(c.From)
		require.NoError(t, err)
		dt, err := ai.ParseName(c.To)
		require.NoError(t, err)
		in, err := hex.DecodeString(c.In)
		require.NoError(t, err)
		want, err := hex.DecodeString(c.Out)
		require.NoError(t, err)
		n := len(in) / st.Size()
		// Every misalignment goes another way than none.
		for shift := range 3 {
			src, dst := append(make([]byte, shift), in...), make([]byte, shift+len(want))
			require.NoError(t, Convert(at(dst[shift:]), dt, at(src[shift:]), st, n))
			inputs, wants, gots := printed(in, st), printed(want, dt), printed(dst[shift:], dt)
			for i := range n {
				assert.Equalf(t, wants[i], gots[i], "%s of %s to %s, element %d", c.From, inputs[i], c.To, i)
			}
		}
	}
}

func TestConvertLongRuns(t *testing.T) {
	const n = 3*blockLen + 5
	src := make([]int32, n)
	for i := range src {
		src[i] = int32(i*7919) % 60000
	}
	for _, dt := range ai.Types() {
		long := make([]byte, n*dt.Size())
		require.NoError(t, Convert(at(long), dt, unsafe.Pointer(&src[0]), ai.Int32, n))
		single := make([]byte, dt.Size())
		for i := range src {
			require.NoError(t, Convert(at(single), dt, unsafe.Pointer(&src[i]), ai.Int32, 1))
			if got := long[i*dt.Size() : (i+1)*dt.Size()]; !bytes.Equal(single, got) {
				require.Equal(t, single, got, "%s at %d", dt, i)
			}
		}
	}
}

func TestConvertInParallel(t *testing.T) {
	const n = parallelBytes/4 + 12345
	src := make([]int32, n)
	for i := range src {
		src[i] = int32(i)
	}
	dst := make([]float64, n)
	require.NoError(t, Convert(unsafe.Pointer(&dst[0]), ai.Float64, unsafe.Pointer(&src[0]), ai.Int32, n))
	same := make([]int32, n)
	require.NoError(t, Convert(unsafe.Pointer(&same[0]), ai.Int32, unsafe.Pointer(&src[0]), ai.Int32, n))
	require.Equal(t, src, same)
	for i := range src {
		same[i] = int32(dst[i])
	}
	require.Equal(t, src, same)
}

func TestConvertSameTypeMayOverlap(t *testing.T) {
	for _, n := range []int{100, parallelBytes + 99} {
		whole := make([]byte, n+16)
		for i := range whole {
			whole[i] = byte(i * 31 >> 3)
		}
		want := append([]byte(nil), whole[:n]...)
		require.NoError(t, Convert(at(whole[16:]), ai.Uint8, at(whole), ai.Uint8, n))
		require.Equal(t, want, whole[16:])
	}
}

func TestConvertForeignBool(t *testing.T) {
	out := make([]byte, 3)
	require.NoError(t, Convert(at(out), ai.Uint8, at([]byte{0, 1, 0xff}), ai.Bool, 3))
	require.Equal(t, []byte{0, 1, 1}, out)
}

func TestConvertHasNoRule(t *testing.T) {
	room := make([]byte, 64)
	for _, unknown := range []ai.ElementType{ai.Invalid, 200} {
		for _, other := range ai.Types() {
			require.ErrorIs(t, Convert(at(room), unknown, at(room[32:]), other, 1), ErrNoRule)
			require.ErrorIs(t, Convert(at(room), other, at(room[32:]), unknown, 1), ErrNoRule)
		}
	}
	require.ErrorIs(t, Convert(at(room), ai.Invalid, at(room), ai.Invalid, 1), ErrNoRule)
	require.NoError(t, Convert(nil, ai.Float32, nil, ai.Int8, 0))
	require.ErrorContains(t, Convert(nil, ai.Invalid, nil, ai.Int8, 0),
		"no sound rule converts int8 to invalid: unknown element type")
}

func TestConvertHasARuleForEveryPair(t *testing.T) {
	room := make([]byte, 64)
	for _, dt := range ai.Types() {
		for _, st := range ai.Types() {
			require.NoError(t, Convert(at(room), dt, at(room[32:]), st, 1))
		}
	}
}

func BenchmarkConvert(b *testing.B) {
	const n = 1 << 16
	src, dst := make([]float64, 2*n), make([]float64, 2*n)
	for _, p := range [][2]ai.ElementType{
		{ai.Float32, ai.Float64},
		{ai.Int32, ai.Float32},
		{ai.Float64, ai.Float16},
		{ai.Float16, ai.Float32},
		{ai.Float32, ai.Float16},
		{ai.Float64, ai.Int32},
		{ai.Float64, ai.Float32},
		{ai.Float16, ai.Complex128},
		{ai.Float32, ai.Float8E4M3FN},
		{ai.Float8E4M3FN, ai.Float32},
	} {
		st, dt := p[0], p[1]
		values := make([]float64, n)
		for i := range values {
			values[i] = 1000 * math.Sin(float64(i))
		}
		require.NoError(b, Convert(unsafe.Pointer(&src[0]), st, unsafe.Pointer(&values[0]), ai.Float64, n))
		b.Run(st.String()+"→"+dt.String(), func(b *testing.B) {
			b.SetBytes(int64(n * (st.Size() + dt.Size())))
			for b.Loop() {
				_ = Convert(unsafe.Pointer(&dst[0]), dt, unsafe.Pointer(&src[0]), st, n)
			}
		})
	}
}
