package gobuffer_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
)

// Memory that goes back in the order of a stream: nobody waits, and all work on it is before that.
func TestAdoptInOrder(t *testing.T) {
	for _, kind := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAHost} {
		t.Run(kind.String(), func(t *testing.T) {
			fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 1, Manual: true, Strict: true, Still: true,
				Reuses: true})
			r, err := gobuffer.NewRuntime(fake)
			require.NoError(t, err)
			block, err := r.Allocate(kind, 0, 256, 0, false)
			require.NoError(t, err)
			own, err := fake.NewStream(0)
			require.NoError(t, err)
			other, err := fake.NewStream(0)
			require.NoError(t, err)
			var told []backends.Stream
			late := errors.New("late")
			adopt := func() *gobuffer.Memory {
				m, err := r.AdoptInOrder(block.Region(), 200, own, func(s backends.Stream) error {
					told = append(told, s)
					return late
				})
				require.NoError(t, err)
				assert.False(t, m.Owned())
				return m
			}
			work := func(s backends.Stream) {
				require.NoError(t, fake.Launch(0, s, func(func(backends.Address, int) []byte) {}))
			}

			m := adopt()
			stream, busy := m.Busy()
			assert.True(t, busy, "who uses it elsewhere runs after what the stream holds")
			assert.Equal(t, own, stream)
			assert.False(t, m.ReleaseAtOnce())
			work(own)
			require.ErrorIs(t, m.Release(), late)
			assert.Equal(t, []backends.Stream{own}, told)
			assert.Zero(t, fake.CallCount("Wait"))

			m = adopt()
			work(other)
			require.NoError(t, m.Leave(other))
			require.ErrorIs(t, m.Release(), late)
			assert.Equal(t, 1, fake.CallCount("Wait"), "its stream runs after the other one")
			assert.Equal(t, []backends.Stream{own, own}, told)

			// A stream that ends is not named any more.
			m = adopt()
			require.NoError(t, m.Forget(own))
			require.ErrorIs(t, m.Release(), late)
			assert.NotEqual(t, own, told[2])
			assert.Zero(t, fake.CallCount("Synchronize")+fake.CallCount("SynchronizeEvent")+fake.CallCount("SynchronizeDevice"))

			// On whatever streams it was used, the device has done all of it.
			m = adopt()
			require.NoError(t, m.Leave(backends.EveryStream))
			require.NoError(t, m.Release())
			assert.Len(t, told, 3, "it is aside")
			require.ErrorIs(t, r.ReleasePostponed(), late)
			assert.Equal(t, 1, fake.CallCount("SynchronizeDevice"))
			assert.Len(t, told, 4)

			adopt().Disown()
			assert.Len(t, told, 4)
			_, err = r.AdoptInOrder(backends.Region{Allocator: kind}, 8, own, nil)
			var bad *gobuffer.ArgumentError
			require.ErrorAs(t, err, &bad)
			fake.Finish()
			require.NoError(t, errors.Join(block.Release(), fake.DestroyStream(0, own), fake.DestroyStream(0, other)))
			fake.Finish()
			fake.AssertClean(t)
		})
	}
}
