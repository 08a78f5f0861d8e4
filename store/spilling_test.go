package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

const oneUnit = 64 << 10

// spillingServer has room for one object on each device.
func spillingServer(t *testing.T, path string, limit int64) *Server {
	t.Helper()
	return startServer(t, ServerOptions{Path: path, DeviceLimit: limit, Spill: folder(t), SpillDevices: newRuntime(t)})
}

// TestAnotherServerIsToldOfWhatItHasSpilled has two clients of an object, of which one tells a new server of it and lets
// go. The other comes when it is in a file, or in other memory, which is not what that one has mapped.
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
		_, _, err = b.Exists(background, id)
		require.NoError(t, err)
		s.mu.Lock()
		assert.Zero(t, s.objects[id].leases, "B has other memory")
		s.mu.Unlock()
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
	s.mu.Lock()
	for i := range mostDomains + 6 { // as objects on devices of these would
		s.domainOf(backends.UUID{0xff, byte(i + 1)})
	}
	s.mu.Unlock()
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
		s := startServer(t, ServerOptions{DeviceLimit: 32 << 20, HostLimit: 32 << 20, Spill: folder(t), SpillDevices: newRuntime(t)})
		a, b := newClient(t, s), newClient(t, s)
		makeObject(t, a, what, 5)
		what.Shape = []int{little}
		done := make(chan error)
		go func() {
			_, err := a.Create(background, what)
			done <- err
		}()
		for moving := false; !moving && s.Statistics().Spills == 0; {
			s.mu.Lock()
			for _, o := range s.objects {
				moving = moving || o.unit.moving
			}
			s.mu.Unlock()
		}
		_, err := b.Create(background, what)
		require.NoError(t, err)
		require.NoError(t, <-done)
	}
}
