package store

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/store/internal/memory"
	"hamr/store/internal/spill"
)

const oneUnit = 64 << 10

// spillingServer has room for one object on each device.
func spillingServer(t *testing.T, path string, limit int64) *served {
	t.Helper()
	return startServer(t, ServerOptions{Path: path, DeviceLimit: limit, Spill: folder(t), SpillDevices: newRuntime(t)})
}

// TestAnotherServerIsToldOfWhatItHasSpilled has two clients of an object. One tells a new server of it and lets go. The
// other comes when the object is in a file, or in other memory than that client has mapped.
func TestAnotherServerIsToldOfWhatItHasSpilled(t *testing.T) {
	for _, back := range []bool{false, true} {
		first := startServer(t, ServerOptions{})
		a, b := newClient(t, first), newClient(t, first)
		id := makeObject(t, a, bytesOn(oneUnit, 0), 5)
		ofA, err := a.Get(background, id, GetOptions{})
		require.NoError(t, err)
		ofB, err := b.Get(background, id, GetOptions{})
		require.NoError(t, err)
		require.NoError(t, first.Close())
		for _, c := range []*Client{a, b} {
			_, _, err := c.Exists(background, id)
			require.ErrorAs(t, err, new(*LostError))
		}
		require.NoError(t, b.take(background)) // so that it tells nothing yet
		s := spillingServer(t, first.Path(), oneUnit)
		there, _, err := a.Exists(background, id)
		require.NoError(t, err)
		require.True(t, there)
		require.NoError(t, ofA.Release())
		other := makeObject(t, a, bytesOn(oneUnit, 0), 6)
		require.EqualValues(t, oneUnit, s.Statistics().Spilled)
		if back {
			ofA, err = a.Get(background, id, GetOptions{})
			require.NoError(t, err)
			require.NoError(t, ofA.Release())
			_, _, err = a.Exists(background, id) // which tells of the release
			require.NoError(t, err)
		}
		b.give()
		_, _, err = b.Exists(background, id)
		require.NoError(t, err)
		s.Lock.Lock()
		assert.Zero(t, s.Table.Objects[id].Leases, "B has other memory")
		s.Lock.Unlock()
		assert.Equal(t, byte(5), contents(t, ofB.Array())[oneUnit-1])
		require.NoError(t, b.Delete(background, id, true))
		kept, err := a.Get(background, other, GetOptions{})
		require.NoError(t, err)
		_, err = a.Create(background, bytesOn(oneUnit, 0))
		require.ErrorAs(t, err, new(*FullError))
		require.NoError(t, kept.Release())
		require.NoError(t, ofB.Release())
		require.NoError(t, b.Close())
		require.NoError(t, a.Delete(background, other, false))
		require.NoError(t, a.Close())
		empty(t, s)
	}
}

func TestADeviceOfWhichAllIsSpilledIsKnown(t *testing.T) {
	s := spillingServer(t, "", oneUnit)
	c := newClient(t, s)
	spilled, gone := makeObject(t, c, bytesOn(oneUnit, 0), 5), makeObject(t, c, bytesOn(oneUnit, 0), 6)
	require.NoError(t, c.Delete(background, gone, false))
	s.Lock.Lock()
	for i := range memory.MostDomains + 6 { // as objects on devices of these would
		s.Table.Memory.Domain(backends.UUID{0xff, byte(i + 1)})
	}
	s.Lock.Unlock()
	o, err := c.Get(background, spilled, GetOptions{})
	require.NoError(t, err)
	_, err = c.Create(background, bytesOn(oneUnit, 0))
	require.ErrorAs(t, err, new(*FullError))
	require.NoError(t, o.Release())
}

// TestRoomThatIsBeingMadeIsWaitedFor asks for some while all that may go is on its way to a file.
func TestRoomThatIsBeingMadeIsWaitedFor(t *testing.T) {
	for _, what := range []Description{bytesOn(32<<20, 0), bytesOf(32 << 20)} {
		const little = 100 << 10
		s := startServer(t, ServerOptions{DeviceLimit: 32 << 20, HostLimit: 32 << 20, Spill: folder(t),
			SpillDevices: newRuntime(t)})
		a, b := newClient(t, s), newClient(t, s)
		makeObject(t, a, what, 5)
		what.Shape = []int{little}
		done := make(chan error)
		go func() {
			_, err := a.Create(background, what)
			done <- err
		}()
		for moving := false; !moving && s.Statistics().Spills == 0; {
			s.Lock.Lock()
			for _, o := range s.Table.Objects {
				moving = moving || o.Unit.Moving
			}
			s.Lock.Unlock()
		}
		_, err := b.Create(background, what)
		require.NoError(t, err)
		require.NoError(t, <-done)
	}
}

// fullFolder has a server's folder for spilled files have room for some bytes.
func fullFolder(s *served, room int64) {
	s.Lock.Lock()
	defer s.Lock.Unlock()
	s.Table.Memory.OpenFile = func(folder string) (*os.File, error) {
		s.Lock.Lock()
		defer s.Lock.Unlock()
		var f Statistics
		if s.Table.Figures(&f); f.Spilled+oneUnit > room {
			return os.OpenFile("/dev/full", os.O_RDWR, 0)
		}
		return spill.Open(folder)
	}
}

// thereAre reports which of some objects there are.
func thereAre(t *testing.T, c *Client, ids []ID) (list []bool) {
	t.Helper()
	for _, id := range ids {
		there, _, err := c.Exists(background, id)
		require.NoError(t, err)
		list = append(list, there)
	}
	return list
}

// evictables makes objects that may be evicted where a letter is "e", and others.
func evictables(t *testing.T, c *Client, letters string) (ids []ID) {
	t.Helper()
	for i, letter := range letters {
		what := bytesOf(oneUnit)
		what.Evictable = letter == 'e'
		ids = append(ids, makeObject(t, c, what, byte(i)))
	}
	return ids
}

// TestAFullFolder has room for two objects, and the server for three more.
func TestAFullFolder(t *testing.T) {
	for _, each := range []struct {
		made string
		left []bool
	}{
		{"kkkke", []bool{true, true, true, true, false}}, // what is in memory goes, though another is older
		{"ekekk", []bool{false, true, true, true, true}}, // what is in a file goes
		{"keekk", []bool{true, false, true, true, true}},
	} {
		s := startServer(t, ServerOptions{HostLimit: 3 * oneUnit, Spill: folder(t)})
		fullFolder(s, 2*oneUnit)
		c := newClient(t, s)
		ids := evictables(t, c, each.made)
		makeObject(t, c, bytesOf(oneUnit), 9)
		assert.Equal(t, each.left, thereAre(t, c, ids), each.made)
		assert.LessOrEqual(t, s.Statistics().Memories[0].Peak, int64(3*oneUnit))
	}
}

// TestAFullFolderIsNamed where nothing may be evicted, and evicts nothing in vain.
func TestAFullFolderIsNamed(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 3 * oneUnit, Spill: folder(t)})
	fullFolder(s, 2*oneUnit)
	c := newClient(t, s)
	ids := evictables(t, c, "keekk")
	_, err := c.Create(background, bytesOf(3*oneUnit))
	require.ErrorAs(t, err, new(*SystemError))
	assert.ErrorContains(t, err, s.Options.Spill)
	assert.Equal(t, []bool{true, true, true, true, true}, thereAre(t, c, ids))
}

// TestWhatIsInAFullFolderComesBack in turns, while nobody has a lease and all must be kept.
func TestWhatIsInAFullFolderComesBack(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 3 * oneUnit, Spill: folder(t)})
	fullFolder(s, 2*oneUnit)
	c := newClient(t, s)
	ids := evictables(t, c, "kkkkk")
	for range 3 {
		for i, id := range ids {
			o, err := c.Get(background, id, GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, byte(i), contents(t, o.Array())[oneUnit-1])
			require.NoError(t, o.Release())
		}
	}
	m := s.Statistics().Memories[0]
	assert.LessOrEqual(t, m.Used, int64(3*oneUnit))
	assert.LessOrEqual(t, m.Peak, int64(4*oneUnit), "one at a time")
	// Where no file can be written at all, it goes back, or stays.
	fullFolder(s, 0)
	spilled := s.Statistics().Spilled
	for _, id := range ids {
		if o, err := c.Get(background, id, GetOptions{}); err == nil {
			require.NoError(t, o.Release())
		} else {
			require.ErrorContains(t, err, s.Options.Spill)
		}
	}
	fullFolder(s, 2*oneUnit)
	assert.LessOrEqual(t, s.Statistics().Spilled, spilled)
	for i, id := range ids {
		o, err := c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, byte(i), contents(t, o.Array())[0])
		require.NoError(t, o.Release())
	}
	for _, id := range ids {
		require.NoError(t, c.Delete(background, id, false))
	}
	require.NoError(t, c.Close())
	empty(t, s)
}

// TestARelativeFolder is that of where the server was made, though the program goes elsewhere.
func TestARelativeFolder(t *testing.T) {
	parent := t.TempDir()
	t.Chdir(parent)
	s := startServer(t, ServerOptions{HostLimit: oneUnit, Spill: "spilled"})
	t.Chdir(t.TempDir())
	c := newClient(t, s)
	ids := evictables(t, c, "kk")
	assert.EqualValues(t, oneUnit, s.Statistics().Spilled)
	require.DirExists(t, fmt.Sprintf("%s/spilled", parent))
	assert.Equal(t, []bool{true, true}, thereAre(t, c, ids))
}
