package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
)

// bytesAs returns an array of some bytes of a value.
func bytesAs(r *gobuffer.Runtime, n int, value byte) (*gobuffer.Array, error) {
	a, err := r.NewArray(bytesOf(0).Type, []int{n}, gobuffer.Options{Allocator: backends.Malloc})
	if err != nil {
		return nil, err
	}
	buffer, err := gobuffer.Typed[uint8](a)
	if err != nil {
		return nil, err
	}
	return a, buffer.FillValue(value)
}

// newObjects are arrays of bytes, of sizes in all places that objects have.
func newObjects(t testing.TB, r *gobuffer.Runtime, n int, names bool) (list []NewObject) {
	t.Helper()
	sizes := []int{0, 1, 300, 5000, protocol.LargeFrom, 300_000}
	for i := range n {
		a, err := bytesAs(r, sizes[i%len(sizes)], byte(i))
		require.NoError(t, err)
		t.Cleanup(func() { _ = a.Close() })
		o := NewObject{Array: a, Description: Description{Allocator: backends.Malloc}}
		if i%7 == 3 {
			o.Allocator = backends.CUDA
		}
		if names {
			o.Name = fmt.Sprint("object ", i)
		}
		list = append(list, o)
	}
	return list
}

func TestManyObjectsArePutGotAndDeletedByThreeCalls(t *testing.T) {
	s := startServer(t, ServerOptions{})
	maker, reader := newClient(t, s), newClient(t, s)
	list := newObjects(t, newRuntime(t), 300, true)
	ids, err := maker.PutMany(background, list)
	require.NoError(t, err)
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = o.Name
	}
	found, err := reader.GetNames(background, names)
	require.NoError(t, err)
	require.Equal(t, ids, found)
	objects, err := reader.GetMany(background, append(ids, ids[3], ids[0], ids[3]))
	require.NoError(t, err)
	for i, o := range objects[:len(list)] {
		require.Equal(t, slices.Repeat([]byte{byte(i)}, list[i].Array.Size()), contents(t, o.Array()))
		require.True(t, o.Array().ReadOnly() || o.Array().Size() == 0)
	}
	for i, k := range []int{3, 0, 3} {
		require.Equal(t, ids[k], objects[len(list)+i].ID())
	}
	assert.Equal(t, int64(len(list)), s.Statistics().Leases)
	require.NoError(t, maker.DeleteMany(background, append(ids, ids[0]), false))
	for i, o := range objects {
		if i >= len(list) && o.ID() == ids[3] {
			require.Equal(t, byte(3), contents(t, o.Array())[0])
		}
		require.NoError(t, o.Release())
	}
	gone(t, reader)
	assert.Zero(t, s.Statistics().Breaches)
}

func TestManyObjectsAreNoneAfterAnErrorWhichNamesTheItem(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20, DeviceLimit: 1 << 20})
	c := newClient(t, s)
	list := newObjects(t, newRuntime(t), 8, true)
	ids, err := c.PutMany(background, list[:4])
	require.NoError(t, err)
	leases := func() any { return s.Statistics() }
	isAsBefore := func(err error, at int, kind any) {
		t.Helper()
		var item *ItemError
		require.ErrorAs(t, err, &item)
		if at >= 0 {
			require.Equal(t, at, item.Index)
		}
		require.ErrorAs(t, err, kind)
		require.ErrorContains(t, err, fmt.Sprintf("item %d: ", item.Index))
		eventually(t, func() bool { return s.Statistics().Leases == 0 && s.Statistics().Objects == 4 }, leases)
	}
	absent := protocol.NewID()
	_, err = c.GetMany(background, []ID{ids[0], ids[1], ids[0], absent, ids[2]})
	isAsBefore(err, 3, new(*NotFoundError))
	isAsBefore(c.DeleteMany(background, []ID{ids[0], ids[1], absent, ids[2]}, false), 2, new(*NotFoundError))
	_, err = c.GetNames(background, []string{"object 0", "object 7"})
	isAsBefore(err, 1, new(*NotFoundError))
	_, err = c.GetNames(background, []string{"object 0", ""})
	isAsBefore(err, 1, new(*ArgumentError))
	_, err = c.PutMany(background, append(list[4:7:7], list[1]))
	isAsBefore(err, 3, new(*NameTakenError))
	_, err = c.PutMany(background, append(list[4:6:6], list[4]))
	isAsBefore(err, 2, new(*NameTakenError))
	_, err = c.PutMany(background, append(list[4:6:6], NewObject{}))
	isAsBefore(err, 2, new(*ArgumentError))
	wide := newObjects(t, newRuntime(t), 6, false)[5]
	_, err = c.PutMany(background, append(list[4:6:6], wide, wide, wide, wide))
	isAsBefore(err, -1, new(*FullError))
	wide.Allocator = backends.CUDA
	_, err = c.PutMany(background, append(list[4:6:6], wide, wide, wide, wide))
	isAsBefore(err, -1, new(*FullError))
	b := beginObject(t, c, bytesOf(70_000), 1)
	_, err = c.GetMany(background, []ID{ids[0], b.ID()})
	require.ErrorAs(t, err, new(*NotSealedError))
	other := newClient(t, s)
	require.ErrorAs(t, other.DeleteMany(background, []ID{ids[0], b.ID()}, false), new(*NotSealedError))
	require.NoError(t, other.DeleteMany(background, append(ids, b.ID()), true))
	require.Error(t, b.Abort(background))
	gone(t, c)
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err = c.PutMany(ended, list)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.GetMany(ended, ids)
	require.ErrorIs(t, err, context.Canceled)
	for _, none := range []func() error{
		func() error { got, err := c.GetMany(background, nil); return errors.Join(err, expectNone(got)) },
		func() error { got, err := c.PutMany(background, nil); return errors.Join(err, expectNone(got)) },
		func() error { return c.DeleteMany(background, nil, false) },
	} {
		require.NoError(t, none())
	}
	require.ErrorAs(t, c.DeleteMany(background, make([]ID, mostWait+1), false), new(*ArgumentError))
}

func expectNone[T any](list []T) error {
	if len(list) > 0 {
		return fmt.Errorf("%d of none", len(list))
	}
	return nil
}

// workMany is work by the calls for several objects.
func workMany(c *Client, random *rand.Rand, some func() (ID, error), keep func(*Object) error) error {
	var ids []ID
	for range 1 + random.IntN(12) {
		id, err := some()
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	switch random.IntN(3) {
	case 0:
		objects, err := c.GetMany(background, ids)
		for _, o := range objects {
			err = errors.Join(err, keep(o))
		}
		return err
	case 1:
		return c.DeleteMany(background, ids[:1+len(ids)/4], random.IntN(3) == 0)
	}
	var list []NewObject
	for range ids {
		value := byte(random.IntN(256))
		a, err := bytesAs(c.runtime, []int{10, 1000, 30_000, 100_000}[random.IntN(4)], value)
		if err != nil {
			return err
		}
		defer a.Close()
		o := NewObject{Array: a, Description: Description{
			Allocator: backends.Malloc, Metadata: []byte(strconv.Itoa(int(value))), Evictable: random.IntN(4) > 0,
		}}
		if random.IntN(3) == 0 {
			o.Allocator = backends.CUDA
		}
		list = append(list, o)
	}
	if random.IntN(3) == 0 {
		list[random.IntN(len(list))].Name = strconv.Itoa(random.IntN(5))
	}
	_, err := c.PutMany(background, list)
	return err
}

// stepMany is a step of the model by the calls for several objects.
func (m *model) stepMany(at int) {
	c := m.clients[at]
	var ids []ID
	for range m.random.IntN(20) {
		ids = append(ids, m.pick())
	}
	bad := slices.IndexFunc(ids, func(id ID) bool { return m.objects[id] == nil || !m.objects[id].sealed })
	switch m.random.IntN(3) {
	case 0:
		objects, err := c.GetMany(background, ids)
		if err != nil && m.mayBeGone(ids, err) {
			return
		}
		if bad >= 0 {
			var item *ItemError
			require.ErrorAs(m.t, err, &item)
			require.Equal(m.t, bad, item.Index)
			return
		}
		require.NoError(m.t, err)
		for i, o := range objects {
			known := m.objects[ids[i]]
			known.leases++
			m.leases[at] = append(m.leases[at], modelLease{o, ids[i], known.value})
		}
	case 1:
		ids = ids[:len(ids)/6]
		err := c.DeleteMany(background, ids, true)
		if err != nil && m.mayBeGone(ids, err) {
			return
		}
		if slices.ContainsFunc(ids, func(id ID) bool { return m.objects[id] == nil }) {
			require.ErrorAs(m.t, err, new(*NotFoundError))
			return
		}
		require.NoError(m.t, err)
		for _, id := range ids {
			if m.objects[id] != nil {
				m.forget(id)
			}
		}
	case 2:
		var list []NewObject
		for range m.random.IntN(9) {
			size := []int{0, 1, 64, 5000, protocol.LargeFrom, 100_000}[m.random.IntN(6)]
			a, err := bytesAs(c.runtime, size, byte(1+m.random.IntN(255)))
			require.NoError(m.t, err)
			defer a.Close()
			what := bytesOf(size)
			if m.random.IntN(4) == 0 {
				what.Allocator = backends.CUDA
			}
			list = append(list, NewObject{Array: a, Description: what})
		}
		made, err := c.PutMany(background, list)
		if m.full && errors.As(err, new(*FullError)) {
			_, err = c.Statistics(background) // the server is told of what was given up before
			require.NoError(m.t, err)
			return
		}
		require.NoError(m.t, err)
		for i, id := range made {
			value := byte(0)
			if values := contents(m.t, list[i].Array); len(values) > 0 {
				value = values[0]
			}
			require.Nil(m.t, m.objects[id])
			m.ids = append(m.ids, id)
			m.objects[id] = &modelObject{what: list[i].Description, value: value, size: list[i].Array.Size(), sealed: true,
				owner: at, names: map[string]bool{}}
		}
	}
}

// mayBeGone reports whether an error of many objects is that one was evicted, which it forgets, or that there is no
// room to bring one back.
func (m *model) mayBeGone(ids []ID, err error) bool {
	var item *ItemError
	require.ErrorAs(m.t, err, &item)
	return m.gone(ids[item.Index], err) || m.full && errors.As(err, new(*FullError))
}
