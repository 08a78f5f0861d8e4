package store

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
)

func TestPrivateElements(t *testing.T) {
	s := startServer(t, ServerOptions{})
	maker, other := newClient(t, s), newClient(t, s)
	const size = 1 << 20
	threes, nines := bytes.Repeat([]byte{3}, size), bytes.Repeat([]byte{9}, size)
	made, err := beginObject(t, maker, bytesOf(size), 3).Seal(background)
	require.NoError(t, err)
	got, err := other.Get(background, made.ID(), GetOptions{})
	require.NoError(t, err)
	for _, o := range []*Object{made, got} {
		own, err := o.Private()
		require.NoError(t, err)
		again, err := o.Private()
		require.NoError(t, err)
		assert.Equal(t, backends.Malloc, own.Memory().Region().Allocator)
		fill(t, own, 9)
		for _, a := range []interface{ ReadOnly() bool }{own, again} {
			assert.False(t, a.ReadOnly())
		}
		assert.Equal(t, nines, contents(t, own))
		assert.Equal(t, threes, contents(t, again))
		assert.Equal(t, threes, contents(t, made.Array()))
		assert.Equal(t, threes, contents(t, got.Array()))
		require.NoError(t, own.Close())
		require.NoError(t, again.Close())
	}
	own, err := got.Private()
	require.NoError(t, err)
	require.NoError(t, got.Release())
	require.NoError(t, made.Release())
	require.NoError(t, maker.Delete(background, made.ID(), false))
	f, err := maker.Statistics(background)
	require.NoError(t, err)
	assert.EqualValues(t, 1, f.Leases, "it keeps the lease")
	assert.Equal(t, threes, contents(t, own))
	require.NoError(t, own.Close())
	_, err = got.Private()
	require.ErrorContains(t, err, "released")
	require.NoError(t, other.Close())
	require.NoError(t, maker.Close())
	empty(t, s)
}

func TestWhatHasNoPrivateElements(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	onDevice := bytesOf(1 << 20)
	onDevice.Allocator = backends.CUDA
	for _, what := range []Description{bytesOf(100), onDevice} {
		o, err := c.Get(background, makeObject(t, c, what, 3), GetOptions{})
		require.NoError(t, err)
		_, err = o.Private()
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.NoError(t, o.Release())
	}
	b := beginObject(t, c, bytesOf(1<<20), 3)
	o, err := c.Get(background, b.ID(), GetOptions{Unsafe: true})
	require.NoError(t, err)
	_, err = o.Private()
	var unsealed *NotSealedError
	require.ErrorAs(t, err, &unsealed)
	require.NoError(t, o.Release())
	require.NoError(t, b.Abort(background))

	id := makeObject(t, c, bytesOf(0), 0)
	o, err = c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	none, err := o.Private()
	require.NoError(t, err)
	assert.Empty(t, contents(t, none))
	require.NoError(t, none.Close())
	require.NoError(t, o.Release())
	var nothing *Object
	_, err = nothing.Private()
	require.ErrorContains(t, err, "nil or a zero value")
	_, err = (&Object{}).Private()
	require.ErrorContains(t, err, "nil or a zero value")
	require.NoError(t, c.Close())
}

func TestPreparedMemory(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	onDevice := bytesOf(1 << 20)
	onDevice.Allocator = backends.CUDA
	ended, end := context.WithCancel(background)
	end()
	for _, what := range []Description{bytesOf(0), bytesOf(100), bytesOf(5<<20 + 7), onDevice} {
		b, err := c.Create(background, what)
		require.NoError(t, err)
		require.NoError(t, b.Prepare(background))
		fill(t, b.Array(), 5)
		require.NoError(t, b.Prepare(background))
		require.ErrorIs(t, b.Prepare(ended), context.Canceled)
		assert.Equal(t, bytes.Repeat([]byte{5}, what.Shape[0]), contents(t, b.Array()))
		o, err := b.Seal(background)
		require.NoError(t, err)
		require.NoError(t, o.Release())
	}
	var none *Builder
	require.ErrorIs(t, none.Prepare(background), errNoBuilder)
	require.ErrorIs(t, (&Builder{}).Prepare(background), errNoBuilder)
	require.NoError(t, c.Close())
}

func TestAPrivateGroup(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, other := newClient(t, s), newClient(t, s)
	id, err := c.PutGroup(background, NewGroup{
		Description: Description{Allocator: backends.Malloc},
		Arrays: []GroupArray{
			{Path: "a", Array: anArray(t, newRuntime(t), arrayiface.Uint8, 3, 5000)},
			{Path: "b", Array: anArray(t, newRuntime(t), arrayiface.Uint8, 8, 5<<20)},
		},
	})
	require.NoError(t, err)
	shared, err := other.GetGroup(background, id, GroupOptions{})
	require.NoError(t, err)
	before := bytes.Clone(contents(t, shared.arrays[0]))
	for range 2 {
		own, err := other.GetGroup(background, id, GroupOptions{Private: true, Only: []string{"a"}})
		require.NoError(t, err)
		array, err := own.Array("a")
		require.NoError(t, err)
		assert.Equal(t, before, contents(t, array))
		fill(t, array, 99)
		assert.Equal(t, before, contents(t, shared.arrays[0]))
		require.NoError(t, own.Release())
	}
	require.NoError(t, shared.Release())
	id = makeObject(t, c, bytesOf(100), 3)
	_, err = c.GetGroup(background, id, GroupOptions{Private: true})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, c.Close())
	require.NoError(t, other.Close())
}
