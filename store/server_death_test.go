package store

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAServersDeath(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	server := startRun(t, "", "serve", path)
	var c *Client
	eventually(t, func() (ok bool) { var err error; c, err = Connect(background, path, newRuntime(t)); return err == nil },
		func() any { return nil })
	defer c.Close()
	var objects []*Object
	for _, size := range []int{0, 50, 1000, 1 << 20} {
		id := makeObject(t, c, bytesOf(size), 5)
		o, err := c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		objects = append(objects, o)
	}
	require.NoError(t, c.PutName(background, "it", objects[3].ID(), false))
	forgotten := makeObject(t, c, bytesOf(70_000), 6)
	var builders []*Builder
	for _, size := range []int{40, 1 << 20} {
		b, err := c.Create(background, bytesOf(size))
		require.NoError(t, err)
		builders = append(builders, b)
	}
	require.NoError(t, server.Process.Kill())
	require.True(t, killed(server.wait(t)))
	_, _, err := c.Exists(background, forgotten)
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, path, lost.Path)
	for _, o := range objects {
		for _, v := range contents(t, o.Array()) {
			require.Equal(t, byte(5), v)
		}
	}
	startRun(t, "", "serve", path)
	eventually(t, func() bool { _, _, err = c.Exists(background, forgotten); return err == nil },
		func() any { return err })
	other, err := Connect(background, path, newRuntime(t))
	require.NoError(t, err)
	defer other.Close()
	for _, o := range objects {
		got, err := other.Get(background, o.ID(), GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, contents(t, o.Array()), contents(t, got.Array()))
		require.NoError(t, got.Release())
	}
	there, _, err := other.Exists(background, forgotten)
	require.NoError(t, err)
	assert.False(t, there, "nobody had it")
	id, err := other.GetName(background, "it", false)
	require.NoError(t, err)
	assert.Equal(t, objects[3].ID(), id)
	for _, b := range builders {
		fill(t, b.Array(), 8)
		o, err := b.Seal(background)
		require.NoError(t, err)
		got, err := other.Get(background, o.ID(), GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, byte(8), contents(t, got.Array())[30])
		objects = append(objects, got, o)
	}
	for _, o := range objects {
		require.NoError(t, o.Release())
	}
	list, _, err := other.List(background, ListOptions{Unsealed: true})
	require.NoError(t, err)
	for _, info := range list {
		require.NoError(t, other.Delete(background, info.ID, false))
	}
	eventually(t, func() bool {
		_, _, err := c.Exists(background, forgotten) // with the reply it learns which slabs are gone
		require.NoError(t, err)
		f, err := other.Statistics(background)
		require.NoError(t, err)
		return f.Objects == 0 && f.Leases == 0 && f.Memories[0].Used == 0 && f.Memories[0].Lingering == 0
	}, func() any { f, _ := other.Statistics(background); return f })
}
