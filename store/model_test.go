package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/store/internal/protocol"
)

// modelObject is what the plain map knows of an object.
type modelObject struct {
	what   Description
	value  byte
	size   int
	sealed bool
	owner  int
	leases int
	names  map[string]bool
}

type modelLease struct {
	object *Object
	id     ID
	value  byte
}

// model walks over a server with several clients, beside a plain map.
type model struct {
	t        *testing.T
	random   *rand.Rand
	server   *served
	clients  []*Client
	objects  map[ID]*modelObject
	ids      []ID // of all that were ever made
	names    map[string]ID
	builders map[ID]*Builder
	leases   [][]modelLease
	evicts   bool // objects that may go do
	full     bool // there may be no room
}

var modelModes = map[string]struct {
	limit  int64
	spills bool
	ready  int64
}{
	"roomy": {1 << 30, false, 0}, "evicting": {3 << 20, false, 0}, "spilling": {3 << 20, true, 0},
	"roomy, ready": {1 << 30, false, 200_000}, "evicting, ready": {3 << 20, false, 400_000},
	"spilling, ready": {3 << 20, true, 100_000},
}

func TestModel(t *testing.T) {
	for mode, how := range modelModes {
		for run := range scaled(5) {
			o := ServerOptions{HostLimit: how.limit, Ready: how.ready}
			if how.spills {
				o.Spill, o.SpillDevices, o.DeviceLimit = folder(t), newRuntime(t), 1<<20
			} else if how.limit < 1<<30 {
				o.DeviceLimit = 1 << 20
			}
			seed := uint64(run)
			ok := t.Run(fmt.Sprintf("%s/%d", mode, run), func(t *testing.T) {
				m := &model{
					t: t, random: rand.New(rand.NewPCG(seed, 1)), server: startServer(t, o), objects: map[ID]*modelObject{},
					names: map[string]ID{}, builders: map[ID]*Builder{}, evicts: how.limit < 1<<30 && !how.spills,
					full: how.limit < 1<<30,
				}
				for range 3 {
					m.clients = append(m.clients, newClient(t, m.server))
					m.leases = append(m.leases, nil)
				}
				for range 300 {
					m.step()
				}
				m.finish()
			})
			if !ok {
				return
			}
		}
	}
}

func (m *model) pick() ID {
	if len(m.ids) == 0 || m.random.IntN(50) == 0 {
		return protocol.NewID()
	}
	recent := min(len(m.ids), 40)
	return m.ids[len(m.ids)-1-m.random.IntN(recent)]
}

// gone reports whether an error is that of an object which was evicted, and forgets it.
func (m *model) gone(id ID, err error) bool {
	o := m.objects[id]
	if o == nil || !m.evicts || !o.what.Evictable || o.what.Pinned || !o.sealed || o.leases > 0 ||
		!errors.As(err, new(*NotFoundError)) {
		return false
	}
	m.forget(id)
	return true
}

func (m *model) forget(id ID) {
	for name := range m.objects[id].names {
		delete(m.names, name)
	}
	delete(m.objects, id)
}

func (m *model) step() {
	at := m.random.IntN(len(m.clients))
	c := m.clients[at]
	id := m.pick()
	o := m.objects[id]
	fullIsFine := func(err error) bool { return m.full && errors.As(err, new(*FullError)) }
	absent := func(err error) {
		require.ErrorAs(m.t, err, new(*NotFoundError))
	}
	switch m.random.IntN(16) {
	case 14, 15:
		m.stepMany(at)
	case 0, 1, 2:
		sizes := []int{0, 1, 64, 65, 1000, 5000, 50_000, protocol.LargeFrom - 1, protocol.LargeFrom, 100_000, 300_000}
		what := bytesOf(sizes[m.random.IntN(len(sizes))])
		what.Evictable, what.Separate, what.Pinned = m.random.IntN(2) == 0, m.random.IntN(5) == 0, m.random.IntN(20) == 0
		if m.random.IntN(4) == 0 {
			what.Allocator = backends.CUDA
		}
		b, err := c.Create(background, what)
		if fullIsFine(err) {
			return
		}
		require.NoError(m.t, err)
		require.Nil(m.t, m.objects[b.ID()])
		if what.Shape[0] >= protocol.LargeFrom && what.Allocator != backends.CUDA {
			require.Equal(m.t, make([]byte, what.Shape[0]), contents(m.t, b.Array()))
		}
		value := byte(1 + m.random.IntN(255))
		fill(m.t, b.Array(), value)
		m.ids = append(m.ids, b.ID())
		m.objects[b.ID()] = &modelObject{what: what, value: value, size: what.Shape[0], owner: at, names: map[string]bool{},
			leases: 1}
		m.builders[b.ID()] = b
	case 3, 4:
		b := m.builders[id]
		if b == nil {
			return
		}
		delete(m.builders, id)
		if o == nil {
			_, err := b.Seal(background)
			require.ErrorAs(m.t, err, new(*DeletedError))
			return
		}
		if m.random.IntN(5) == 0 {
			require.NoError(m.t, b.Abort(background))
			m.forget(id)
			return
		}
		object, err := b.Seal(background)
		require.NoError(m.t, err)
		o.sealed = true
		m.leases[o.owner] = append(m.leases[o.owner], modelLease{object, id, o.value})
	case 5, 6, 7:
		object, err := c.Get(background, id, GetOptions{})
		if m.gone(id, err) || o != nil && fullIsFine(err) {
			return
		}
		switch {
		case o == nil:
			absent(err)
		case !o.sealed:
			require.ErrorAs(m.t, err, new(*NotSealedError))
		default:
			require.NoError(m.t, err)
			o.leases++
			m.leases[at] = append(m.leases[at], modelLease{object, id, o.value})
		}
	case 8, 9:
		if n := len(m.leases[at]); n > 0 {
			i := m.random.IntN(n)
			l := m.leases[at][i]
			m.leases[at] = append(m.leases[at][:i], m.leases[at][i+1:]...)
			m.checkContents(l)
			require.NoError(m.t, l.object.Release())
			if o := m.objects[l.id]; o != nil {
				o.leases--
			}
		}
	case 10:
		force := m.random.IntN(2) == 0
		err := c.Delete(background, id, force)
		switch {
		case m.gone(id, err):
		case o == nil:
			absent(err)
		case !o.sealed && o.owner != at && !force:
			require.ErrorAs(m.t, err, new(*NotSealedError))
		default:
			require.NoError(m.t, err)
			m.forget(id)
		}
	case 11:
		m.stepName(c, id, o)
	case 12:
		there, sealed, err := c.Exists(background, id)
		require.NoError(m.t, err)
		if o != nil && !there && m.gone(id, &NotFoundError{}) {
			return
		}
		require.Equal(m.t, o != nil, there)
		require.Equal(m.t, o != nil && o.sealed, sealed)
	case 13:
		switch m.random.IntN(3) {
		case 0:
			m.checkList(c)
		case 1:
			on := m.random.IntN(2) == 0
			err := c.SetEvictable(background, id, on)
			switch {
			case m.gone(id, err):
			case o == nil:
				absent(err)
			default:
				require.NoError(m.t, err)
				o.what.Evictable = on
			}
		case 2:
			for _, leases := range m.leases {
				for _, l := range leases {
					m.checkContents(l)
				}
			}
			for id, b := range m.builders {
				if o := m.objects[id]; o != nil {
					require.Equal(m.t, bytes.Repeat([]byte{o.value}, o.size), contents(m.t, b.Array()))
				}
			}
		}
	}
}

func (m *model) checkContents(l modelLease) {
	require.Equal(m.t, bytes.Repeat([]byte{l.value}, l.object.Array().Size()), contents(m.t, l.object.Array()))
}

func (m *model) stepName(c *Client, id ID, o *modelObject) {
	name := fmt.Sprintf("name %d", m.random.IntN(6))
	had, taken := m.names[name]
	switch m.random.IntN(4) {
	case 3:
		m.replace(c, name, id, o)
	case 0:
		replace := m.random.IntN(2) == 0
		err := c.PutName(background, name, id, replace)
		var other *NameTakenError
		switch {
		case m.gone(id, err):
		case o == nil:
			require.ErrorAs(m.t, err, new(*NotFoundError))
		case errors.As(err, &other):
			require.True(m.t, taken && !replace && had == other.ID)
		default:
			require.NoError(m.t, err)
			if taken && had != id {
				// Or else it was evicted, and the name free.
				require.True(m.t, replace || m.evicts && m.objects[had].what.Evictable)
				delete(m.objects[had].names, name)
			}
			m.names[name] = id
			o.names[name] = true
		}
	case 1:
		got, err := c.GetName(background, name, false)
		switch {
		case taken && m.gone(had, err):
		case !taken:
			require.ErrorAs(m.t, err, new(*NotFoundError))
		default:
			require.NoError(m.t, err)
			require.Equal(m.t, had, got)
		}
	case 2:
		err := c.DropName(background, name)
		switch {
		case taken && m.gone(had, err):
		case !taken:
			require.ErrorAs(m.t, err, new(*NotFoundError))
		default:
			require.NoError(m.t, err)
			delete(m.names, name)
			delete(m.objects[had].names, name)
		}
	}
}

func (m *model) checkList(c *Client) {
	found := map[ID]bool{}
	for after := uint64(0); ; {
		list, next, err := c.List(background, ListOptions{Unsealed: true, After: after, Most: 1 + m.random.IntN(30)})
		require.NoError(m.t, err)
		for _, info := range list {
			o := m.objects[info.ID]
			require.NotNil(m.t, o)
			require.False(m.t, found[info.ID])
			found[info.ID] = true
			require.Equal(m.t, o.sealed, info.Sealed)
			require.Equal(m.t, o.size, info.Layout.Count())
			require.Equal(m.t, arrayiface.Uint8, info.Layout.Type)
			require.Equal(m.t, o.what.Allocator == backends.CUDA, info.Device != backends.UUID{})
			sort.Strings(info.Names)
			var names []string
			for name := range o.names {
				names = append(names, name)
			}
			sort.Strings(names)
			require.Equal(m.t, names, info.Names)
		}
		if after = next; next == 0 {
			break
		}
	}
	for id := range m.objects {
		if !found[id] {
			require.True(m.t, m.gone(id, &NotFoundError{}), "object %s is not in the list", id)
		}
	}
}

// finish ends everything, in whatever order, and has nothing left.
func (m *model) finish() {
	m.checkList(m.clients[0])
	var kept []modelLease
	for _, leases := range m.leases {
		for _, l := range leases {
			m.checkContents(l)
			if m.random.IntN(2) == 0 {
				require.NoError(m.t, l.object.Release())
			} else {
				kept = append(kept, l)
			}
		}
	}
	for id := range m.objects {
		if err := m.clients[0].Delete(background, id, true); !m.gone(id, err) {
			require.NoError(m.t, err)
		}
	}
	for _, c := range m.clients {
		require.NoError(m.t, c.Close())
	}
	empty(m.t, m.server)
	require.Zero(m.t, m.server.Statistics().Breaches)
	for _, l := range kept {
		m.checkContents(l) // what is mapped stays
		require.NoError(m.t, l.object.Release())
	}
	for _, b := range m.builders {
		require.Error(m.t, b.Abort(background))
	}
}
