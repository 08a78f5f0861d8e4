package gobuffer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// A change of size writes nothing that another array of the memory has.
func TestChangesOfSizeLeaveSharersAlone(t *testing.T) {
	steps := map[string]func(t *testing.T, a, two, nine *gobuffer.Array){
		"shrink, then append": func(t *testing.T, a, two, _ *gobuffer.Array) {
			require.NoError(t, a.Resize(2, nil))
			require.NoError(t, a.Append(two))
		},
		"shrink, then grow with a value": func(t *testing.T, a, two, _ *gobuffer.Array) {
			require.NoError(t, a.Resize(1, nil))
			value, err := two.Index(0, 0)
			require.NoError(t, err)
			require.NoError(t, a.Resize(4, value))
			closeAll(t, value)
		},
		"shrink, then reserve with a value": func(t *testing.T, a, two, _ *gobuffer.Array) {
			value, err := two.Index(0, 0)
			require.NoError(t, err)
			require.NoError(t, a.Resize(1, nil))
			require.NoError(t, a.Reserve(4, value))
			closeAll(t, value)
		},
		"assign fewer": func(t *testing.T, a, two, _ *gobuffer.Array) { require.NoError(t, a.Assign(two)) },
		"assign more":  func(t *testing.T, a, _, nine *gobuffer.Array) { require.NoError(t, a.Assign(nine)) },
		"grow beyond the capacity": func(t *testing.T, a, _, nine *gobuffer.Array) {
			for range 4 {
				require.NoError(t, a.Append(nine))
			}
		},
	}
	for name, step := range steps {
		for _, at := range []place{{backends.Malloc, -1}, {backends.CUDA, 0}, grows} {
			for _, adopted := range []bool{false, true} {
				if adopted && at.allocator != backends.Malloc {
					continue
				}
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, 1, growing(1<<12))
					whole := counting(arrayiface.Int32, 5)
					a := w.array(at.options(gobuffer.Sync), whole)
					require.NoError(t, a.Reserve(10, nil))
					if adopted {
						m, err := w.runtime.Adopt(a.Memory().Region(), a.Memory().Size(), 0, nil)
						require.NoError(t, err)
						own := a
						defer closeAll(t, own)
						a = gobuffer.View(m, a.Address(), a.Layout(), a.Layout().Count(), false, a.Options())
					}
					sharer, err := a.Slice(0, 0, 5, 1)
					require.NoError(t, err)
					two, nine := w.array(at.options(gobuffer.Sync), counting(arrayiface.Int32, 2)),
						w.array(at.options(gobuffer.Sync), counting(arrayiface.Int32, 9))
					step(t, a, two, nine)
					w.assertHolds(sharer, whole)
					closeAll(t, a, sharer, two, nine)
				})
			}
		}
	}
}

// Who has the memory alone changes its size in place.
func TestChangesOfSizeStayInPlace(t *testing.T) {
	for _, at := range []place{{backends.Malloc, -1}, {backends.CUDA, 0}, grows} {
		w := newWorld(t, 1, growing(1<<12))
		a, two := w.array(at.options(gobuffer.Sync), counting(arrayiface.Int32, 5)),
			w.array(at.options(gobuffer.Sync), counting(arrayiface.Int32, 2))
		address := a.Address()
		require.NoError(t, a.Resize(2, nil))
		require.NoError(t, a.Append(two))
		require.NoError(t, a.Assign(two))
		assert.Equal(t, address, a.Address())
		assert.GreaterOrEqual(t, a.Capacity(), 5)
		w.assertHolds(a, counting(arrayiface.Int32, 2))
		closeAll(t, a, two)
	}
}

// What two arrays of one size have, each changes as if it were alone: the room behind belongs to one of them.
func TestContentsOfOneSizeAreShared(t *testing.T) {
	w := newWorld(t, 1, growing(1<<12))
	o := place{backends.Malloc, -1}.options(gobuffer.Sync)
	a, other := w.array(o, counting(arrayiface.Int32, 5)), w.array(o, counting(arrayiface.Int32, 5))
	sharer, err := a.Slice(0, 0, 5, 1)
	require.NoError(t, err)
	require.NoError(t, other.Resize(5, nil))
	require.NoError(t, a.Assign(other))
	assert.Equal(t, sharer.Address(), a.Address())
	closeAll(t, a, other, sharer)
}
