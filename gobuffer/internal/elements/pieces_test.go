package elements

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	ai "hamr/arrayiface"
)

// TestLongCallsAreOfPieces, between which Go may stop a goroutine: other threads' calls wait for that
// while garbage is collected.
func TestLongCallsAreOfPieces(t *testing.T) {
	const n = 2*pieceLen + 7
	room := make([]byte, 8*n+8)
	for shift := range 2 {
		sum := 0
		count := func(_, _ unsafe.Pointer, n int) {
			require.LessOrEqual(t, n, pieceLen)
			sum += n
		}
		run(count, ai.Float32, at(room[shift:]), ai.Float64, at(room[shift:]), n)
		require.Equal(t, n, sum)
	}
	for _, shape := range [][]int{{n}, {1, n}, {n, 1}, {3, n}, {n, 3}, {1000, 1000}, {1, 1}} {
		outer, inner := dim{n: shape[0], d: 16, s: 16}, dim{n: shape[len(shape)-1], d: 8, s: 16}
		for _, types := range [][2]ai.ElementType{{ai.Int32, ai.Int32}, {ai.Int32, ai.Float64}} {
			w := &work{dt: types[0], st: types[1], dsize: types[0].Size(), ssize: types[1].Size()}
			c := w.copier(outer, inner)
			require.LessOrEqual(t, c.rows*c.columns, pieceLen, shape)
			require.Positive(t, c.rows*c.columns, shape)
			c.close()
		}
	}
}
