package store

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/groups"
)

// anArray is one of a type and shape, whose bytes follow from a seed.
func anArray(t testing.TB, r *gobuffer.Runtime, kind arrayiface.ElementType, seed byte, shape ...int) *gobuffer.Array {
	t.Helper()
	layout, err := arrayiface.NewLayout(kind, shape, nil)
	require.NoError(t, err)
	a, err := bytesAs(r, layout.NBytes(), 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	values := make([]byte, layout.NBytes())
	for i := range values {
		values[i] = seed + byte(i)&1 // also for truths
	}
	if len(values) == 0 {
		made, err := r.NewArray(kind, shape, gobuffer.Options{Allocator: backends.Malloc})
		require.NoError(t, err)
		return made
	}
	buffer, err := gobuffer.Typed[uint8](a)
	require.NoError(t, err)
	require.NoError(t, buffer.Put(0, values))
	return gobuffer.View(a.Memory().Retain(), a.Address(), layout, layout.Count(), false, a.Options())
}

// bytesIn are an array's, in C order.
func bytesIn(t testing.TB, r *gobuffer.Runtime, a *gobuffer.Array) []byte {
	t.Helper()
	copied, err := a.Copy(gobuffer.Options{Allocator: backends.Malloc}, a.Type())
	require.NoError(t, err)
	defer copied.Close()
	if copied.Size() == 0 {
		return nil
	}
	layout, err := arrayiface.NewLayout(arrayiface.Uint8, []int{copied.Layout().NBytes()}, nil)
	require.NoError(t, err)
	flat := gobuffer.View(copied.Memory().Retain(), copied.Address(), layout, layout.Count(), true, copied.Options())
	defer flat.Close()
	return contents(t, flat)
}

var groupTypes = []arrayiface.ElementType{
	arrayiface.Bool, arrayiface.Int8, arrayiface.Float16, arrayiface.BFloat16, arrayiface.Float32, arrayiface.Complex128,
}

func TestAnyGroupComesBack(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, r := newClient(t, s), newRuntime(t)
	seed := rand.Uint64()
	choose := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed ", seed)
	names := []string{"", "w", "layers.0.weight", "ключ", "a\x00b", "<&>\u2028", strings.Repeat("long.", 2000), `"\`}
	for range scaled(100) {
		what := NewGroup{Description: Description{Allocator: backends.Malloc, Evictable: choose.IntN(2) == 0}}
		if choose.IntN(4) == 0 {
			what.Allocator = backends.CUDA
		}
		if choose.IntN(2) == 0 {
			what.Metadata = []byte(`{"step":7}`)
		}
		for i := range choose.IntN(12) {
			shape := make([]int, choose.IntN(4))
			for k := range shape {
				shape[k] = choose.IntN(9)
			}
			a := GroupArray{Path: fmt.Sprint(names[choose.IntN(len(names))], i)}
			if i == 0 {
				a.Path = names[0]
			}
			switch {
			case i > 0 && choose.IntN(5) == 0:
				a.Array = what.Arrays[i-1].Array
			default:
				a.Array = anArray(t, r, groupTypes[choose.IntN(len(groupTypes))], byte(choose.IntN(2)), shape...)
			}
			if sizes := a.Array.Layout().Shape; len(sizes) > 0 && choose.IntN(3) == 0 {
				strided, err := a.Array.Slice(0, 0, sizes[0], 2)
				require.NoError(t, err)
				a.Array = strided
			}
			if choose.IntN(3) == 0 {
				a.Metadata = []byte(`["of an array"]`)
			}
			what.Arrays = append(what.Arrays, a)
		}
		id, err := c.PutGroup(background, what)
		require.NoError(t, err)
		g, err := c.GetGroup(background, id, GroupOptions{})
		require.NoError(t, err)
		require.Equal(t, len(what.Arrays), g.Len())
		require.Equal(t, what.Evictable, g.Object().Info().Evictable)
		require.Equal(t, string(what.Metadata), string(g.Metadata()))
		paths := g.Paths()
		for i, a := range what.Arrays {
			require.Equal(t, a.Path, paths[i])
			found, err := g.Array(a.Path)
			require.NoError(t, err)
			require.Equal(t, a.Array.Type(), found.Type())
			require.Equal(t, a.Array.Layout().NDim(), found.Layout().NDim())
			require.True(t, slices.Equal(a.Array.Layout().Shape, found.Layout().Shape))
			require.True(t, found.ReadOnly())
			require.Zero(t, uint64(found.Address())%groups.Alignment)
			require.Equal(t, bytesIn(t, r, a.Array), bytesIn(t, r, found))
			require.Equal(t, string(a.Metadata), string(g.ArrayMetadata(a.Path)))
		}
		require.NoError(t, g.Release())
		require.NoError(t, g.Release())
		require.NoError(t, c.Delete(background, id, false))
	}
	gone(t, c)
}

func TestArraysOfOneMemoryAreStoredOnce(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, r := newClient(t, s), newRuntime(t)
	a := anArray(t, r, arrayiface.Float32, 1, 64, 1024)
	turned, err := a.Slice(0, 63, -1, -1)
	require.NoError(t, err)
	what := NewGroup{Description: Description{Allocator: backends.Malloc}}
	for _, path := range []string{"a", "b"} {
		what.Arrays = append(what.Arrays, GroupArray{Path: path, Array: a}, GroupArray{Path: path + "t", Array: turned})
	}
	id, err := c.PutGroup(background, what)
	require.NoError(t, err)
	g, err := c.GetGroup(background, id, GroupOptions{})
	require.NoError(t, err)
	assert.InDelta(t, 2*a.Layout().NBytes(), g.Object().Info().Bytes, 1000)
	found := map[string]*gobuffer.Array{}
	for path, a := range g.All() {
		found[path] = a
	}
	assert.Equal(t, found["a"].Address(), found["b"].Address())
	assert.Equal(t, found["at"].Address(), found["bt"].Address())
	assert.Equal(t, bytesIn(t, r, turned), bytesIn(t, r, found["bt"]))

	// They begin at one address and have as many bytes, which are not the same.
	first, err := a.Slice(0, 0, 32, 1)
	require.NoError(t, err)
	other, err := a.Slice(0, 0, 64, 2)
	require.NoError(t, err)
	plan, err := planOf([]GroupArray{{Path: "first", Array: first}, {Path: "other", Array: other}})
	require.NoError(t, err)
	assert.Len(t, plan.sources, 2)

	// A view of an array keeps the lease.
	view, err := found["b"].Index(0, 3)
	require.NoError(t, err)
	require.NoError(t, g.Release())
	require.NoError(t, c.Delete(background, id, false))
	assert.Equal(t, byte(2), bytesIn(t, r, view)[1])
	assert.Equal(t, int64(1), s.Statistics().Leases)
	require.NoError(t, view.Close())
	gone(t, c)
	_, err = found["a"].Index(0, 0)
	assert.ErrorIs(t, err, gobuffer.ErrFreed)
}

func TestGroupsThatAreRefusedLeaveNothing(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20})
	c, r := newClient(t, s), newRuntime(t)
	a, closed := anArray(t, r, arrayiface.Int8, 0, 3), anArray(t, r, arrayiface.Int8, 0, 3)
	require.NoError(t, closed.Close())
	wide, err := arrayiface.NewLayout(arrayiface.Int8, []int{math.MaxInt / 2}, []int{0})
	require.NoError(t, err)
	host := Description{Allocator: backends.Malloc}
	taken, err := c.PutGroup(background, NewGroup{Description: host, Name: "taken"})
	require.NoError(t, err)
	of := func(arrays ...GroupArray) NewGroup { return NewGroup{Arrays: arrays, Description: host} }
	beside := func(by backends.Address) *gobuffer.Array {
		return gobuffer.View(a.Memory().Retain(), a.Address()+by, wide, wide.Count(), true, a.Options())
	}
	for _, bad := range []struct {
		group NewGroup
		says  string
	}{
		{of(GroupArray{Path: "a"}), `arrays["a"]: buffer is nil or a zero value`},
		{of(GroupArray{Path: "b", Array: closed}), `arrays["b"]: ` + gobuffer.ErrFreed.Error()},
		{of(GroupArray{Path: "a", Array: a}, GroupArray{Path: "a", Array: a}), `arrays[1].Path is "a"`},
		{of(GroupArray{Path: "\xff", Array: a}), `arrays[0].Path is "\xff"`},
		{of(GroupArray{Path: "a", Array: a, Metadata: []byte("{")}), `arrays["a"]: metadata is "{"`},
		{NewGroup{Description: Description{Allocator: backends.None}}, "allocator is "},
		{NewGroup{Description: Description{Metadata: []byte("1,2")}}, `metadata is "1,2"`},
		{NewGroup{Description: host, Name: "taken"}, "taken"},
		{NewGroup{Description: host, Name: strings.Repeat("n", 300)}, "name is "},
		{of(GroupArray{Path: "a", Array: beside(0)}), "host"},
		{of(GroupArray{Path: "a", Array: beside(0)}, GroupArray{Path: "b", Array: beside(1)},
			GroupArray{Path: "c", Array: beside(2)}, GroupArray{Path: "d", Array: beside(3)}), "arrays is "},
	} {
		_, err := c.PutGroup(background, bad.group)
		require.ErrorContains(t, err, bad.says, bad.says)
		eventually(t, func() bool { return s.Statistics().Objects == 1 }, func() any { return s.Statistics() })
	}
	_, err = c.Put(background, closed, host)
	require.ErrorIs(t, err, gobuffer.ErrFreed)
	require.NoError(t, c.Delete(background, taken, false))
	gone(t, c)
}

func TestZeroValuesOfGroups(t *testing.T) {
	var none *Client
	_, err := none.PutGroup(background, NewGroup{})
	require.ErrorAs(t, err, new(*ArgumentError))
	_, err = none.GetGroup(background, ID{}, GroupOptions{})
	require.ErrorAs(t, err, new(*ArgumentError))
	for _, g := range []*Group{nil, {}} {
		assert.Zero(t, g.Len())
		assert.Empty(t, g.Paths())
		assert.Equal(t, "{}", string(g.Values()))
		assert.Nil(t, g.Metadata())
		assert.Nil(t, g.ArrayMetadata("a"))
		assert.Nil(t, g.Object())
		_, err := g.Array("a")
		require.ErrorContains(t, err, "nil or a zero value")
		require.ErrorContains(t, g.Release(), "nil or a zero value")
	}
}

// putDirectory makes a group of some bytes and a directory, as any client may.
func putDirectory(t testing.TB, c *Client, elements int, directory []byte) ID {
	t.Helper()
	return putTold(t, c, groups.Facts{At: elements, Bytes: len(directory)}, elements, directory)
}

func putTold(t testing.TB, c *Client, facts groups.Facts, elements int, directory []byte) ID {
	t.Helper()
	what := bytesOf(elements + len(directory))
	what.Metadata = facts.Metadata(nil)
	b, err := c.Create(background, what)
	require.NoError(t, err)
	buffer, err := gobuffer.Typed[uint8](b.Array())
	require.NoError(t, err)
	require.NoError(t, buffer.Put(elements, directory))
	o, err := b.Seal(background)
	require.NoError(t, err)
	require.NoError(t, o.Release())
	return o.ID()
}

func TestGroupsThatCannotBeReadLeaveNoLease(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	directory := []byte(`{"version":1,"tree":{"a":0},"types":["float32"],"arrays":[[0,0,4]]}`)
	size := 16 + len(directory)
	for _, facts := range []groups.Facts{
		{At: 17, Bytes: len(directory)}, {At: -1, Bytes: 3}, {At: 16, Bytes: -1}, {At: 16, Bytes: len(directory) + 1},
		{At: size + 1, Bytes: 0}, {At: math.MaxInt, Bytes: math.MaxInt}, {At: 16, Bytes: math.MinInt}, {At: 0, Bytes: 16},
		{At: size, Bytes: 0}, {At: 16, Bytes: 20}, {At: 16, Bytes: 1 << 50},
	} {
		for _, only := range [][]string{nil, {"a"}} {
			_, err := c.GetGroup(background, putTold(t, c, facts, 16, directory), GroupOptions{Only: only})
			require.ErrorAs(t, err, new(*ProtocolError), "%+v", facts)
			require.ErrorContains(t, err, "is a group that cannot be read")
		}
	}
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	g, err := c.GetGroup(background, putDirectory(t, c, 16, directory), GroupOptions{})
	require.NoError(t, err)
	require.NoError(t, g.Release())
}

func TestStructuresOfOtherLanguages(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	id := putDirectory(t, c, 512, []byte(`{"version":1,"types":["float32"],"arrays":[[0,0,4],[256,0],[256,0]],
		"metadata":{"l.1":[3]},"tree":{"a.b":{"c":0,"d":"text"},"a":{"b.c":1,"b":["list"]},
		"l":["list",true,2,["tuple",0,["value",3e2],["float","-inf"]]],"n":null,
		"":{"":["value",123456789012345678901234567890]},"e":{}}}`))
	g, err := c.GetGroup(background, id, GroupOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"a.b.c", "a.b.c", "l.1", "l.2.0"}, g.Paths())
	assert.Equal(t, `{"a.b.d":"text","l.0":true,"l.2.1":3e2,"l.2.2":["float","-inf"],"n":null,`+
		`".":123456789012345678901234567890}`, string(g.Values()))
	assert.Equal(t, "[3]", string(g.ArrayMetadata("l.1")))
	a, err := g.Array("a.b.c") // the shorter key comes first
	require.NoError(t, err)
	assert.Zero(t, a.Layout().NDim())
	for _, path := range []string{"a", "l", "l.3", "l.x", "l.-1", "l.0", "n", "x", "a.b.d", "l.1.0", "e", "e."} {
		_, err := g.Array(path)
		require.ErrorAs(t, err, new(*ArgumentError), path)
	}
	require.NoError(t, g.Release())

	g, err = c.GetGroup(background, id, GroupOptions{Only: []string{"l.2", "a.b", "e"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a.b.c", "a.b.c", "l.2.0"}, g.Paths())
	_, err = g.Array("l.1")
	require.ErrorAs(t, err, new(*ArgumentError))
	assert.Equal(t, `{"a.b.d":"text","l.2.1":3e2,"l.2.2":["float","-inf"]}`, string(g.Values()))
	require.NoError(t, g.Release())
	for _, only := range []string{"l.2x", "l.", "b"} {
		_, err = c.GetGroup(background, id, GroupOptions{Only: []string{"l", only}})
		require.ErrorContains(t, err, fmt.Sprintf("only is %q", only))
	}
	g, err = c.GetGroup(background, id, GroupOptions{Only: []string{}})
	require.NoError(t, err)
	assert.Zero(t, g.Len())
	require.NoError(t, g.Release())
	other := makeObject(t, c, bytesOf(3), 1)
	_, err = c.GetGroup(background, other, GroupOptions{})
	require.ErrorContains(t, err, "a group; Get returns other objects")
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
}
