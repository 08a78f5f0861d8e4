package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/gobuffer"
)

func TestReshapeIsAViewOrACopyEverywhere(t *testing.T) {
	everyArray(t, arrayiface.Int32, func(w *world, a *gobuffer.Array, want model) {
		for _, shape := range [][]int{{-1}, {1, -1}, {-1, 2}, {2, 2, -1}, want.shape} {
			_, inPlace, err := a.Layout().Reshape(shape)
			if err != nil {
				_, _, got := a.Reshape(shape, gobuffer.CopyIfNeeded)
				require.Equal(w.t, err, got)
				continue
			}
			for _, c := range []gobuffer.Copying{gobuffer.CopyIfNeeded, gobuffer.CopyNever, gobuffer.CopyAlways} {
				r, view, err := a.Reshape(shape, c)
				if c == gobuffer.CopyNever && !inPlace {
					var refused *gobuffer.ArgumentError
					require.ErrorAs(w.t, err, &refused)
					assert.Equal(w.t, "copy", refused.Argument)
					continue
				}
				require.NoError(w.t, err)
				assert.Equal(w.t, inPlace && c != gobuffer.CopyAlways, view)
				w.assertHolds(r, model{want.kind, r.Layout().Shape, want.data}, "as %v", shape)
				assert.Equal(w.t, a.Allocator(), r.Allocator())
				assert.Equal(w.t, a.Owner(), r.Owner())
				assert.Equal(w.t, r.Size(), r.Capacity())
				if view {
					assert.Same(w.t, a.Memory(), r.Memory())
				} else {
					assert.True(w.t, r.Layout().ContiguousC())
				}
				closeAll(w.t, r)
			}
		}
		w.assertHolds(a, want)
	})
}

func TestReshapeOfAClosedBuffer(t *testing.T) {
	w := newWorld(t, 1, late)
	a := w.lay(places(1)[0], places(1)[0].options(gobuffer.Sync), counting(arrayiface.Int32, 4), arrangements[0])
	closeAll(t, a)
	_, _, err := a.Reshape([]int{2, 2}, gobuffer.CopyIfNeeded)
	require.ErrorIs(t, err, gobuffer.ErrFreed)
}
