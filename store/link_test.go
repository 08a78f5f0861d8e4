package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// TestWhoBreaksARuleIsToldWhich has more requests wait behind the one that does.
func TestWhoBreaksARuleIsToldWhich(t *testing.T) {
	s := startServer(t, ServerOptions{})
	server := startServerProcess(t)
	for _, path := range []string{s.Path(), server.Args[2]} {
		socket, err := wire.Dial(path)
		require.NoError(t, err)
		standing := path != s.Path()
		if standing {
			standStill(t, server.Process)
		}
		require.NoError(t, socket.Send(hello(t), nil))
		for range 20 {
			_ = socket.Send(hello(t), nil)
		}
		if standing {
			require.NoError(t, server.Process.Signal(unix.SIGCONT))
		}
		buffer := make([]byte, 1024)
		_, _, err = socket.Receive(buffer)
		require.NoError(t, err, "the greeting's reply")
		n, _, err := socket.Receive(buffer)
		require.NoError(t, err)
		f, _, err := protocol.NextFrame(buffer[:n])
		require.NoError(t, err)
		require.ErrorContains(t, protocol.DecodeError(f.Status, &protocol.Decoder{Rest: f.Payload}), "a second greeting")
		socket.Close()
	}
}

// TestOthersAreAnsweredWhileOneIsNot has a request take long, and another one come to an end meanwhile.
func TestOthersAreAnsweredWhileOneIsNot(t *testing.T) {
	s, list, id, letGo, outcomes := away(t, 1)
	other := newClient(t, s)
	for range 3 {
		there, _, err := other.Exists(background, id)
		require.NoError(t, err)
		require.True(t, there)
	}
	select {
	case err := <-outcomes:
		require.Fail(t, "it is over", "%v", err)
	default:
	}
	letGo()
	require.NoError(t, <-outcomes)
	there, _, err := list[0].Exists(background, id)
	require.NoError(t, err)
	assert.True(t, there)
	assert.Len(t, s.Links.Here(), 2)
}

// away has requests of clients be away, all for one object, until they are let go.
func away(t *testing.T, clients int) (s *served, list []*Client, id ID, letGo func(), outcomes chan error) {
	t.Helper()
	s = startServer(t, ServerOptions{HostLimit: 1 << 20, Spill: folder(t)})
	for range clients {
		list = append(list, newClient(t, s))
	}
	id = makeObject(t, list[0], bytesOf(100_000), 1)
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	s.Lock.Lock()
	unit := s.Table.Objects[id].Unit
	require.NoError(t, s.Table.Memory.Spill(unit))
	unit.Moving = true // as by one that brings it back, and takes its time
	s.Lock.Unlock()
	outcomes = make(chan error, clients)
	for _, c := range list {
		go func() {
			o, err := c.Get(background, id, GetOptions{})
			if err == nil {
				err = o.Release()
			}
			outcomes <- err
		}()
	}
	eventually(t, func() bool { return len(s.Links.Here()) == 0 }, func() any { return s.Links.Here() })
	return s, list, id, func() {
		s.Lock.Lock()
		defer s.Lock.Unlock()
		unit.Moving = false
		s.Table.Memory.Moved()
	}, outcomes
}

func TestManyAreAwayAndComeBack(t *testing.T) {
	s, list, id, letGo, outcomes := away(t, 40)
	letGo()
	for range list {
		require.NoError(t, <-outcomes)
	}
	for _, c := range list {
		there, _, err := c.Exists(background, id)
		require.NoError(t, err)
		require.True(t, there)
	}
	assert.Len(t, s.Links.Here(), len(list))
}

func TestAServerIsClosedWhileRequestsAreAway(t *testing.T) {
	s, list, _, letGo, outcomes := away(t, 3)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	time.Sleep(time.Millisecond)
	letGo()
	require.NoError(t, <-closed)
	for range list {
		<-outcomes
	}
	assert.Zero(t, s.Links.Count())
}

func TestAClientEndsWhileItsRequestIsAway(t *testing.T) {
	s, list, id, letGo, outcomes := away(t, 2)
	for _, c := range list {
		c.hangUp.Store(true) // as Close does, of which this is a part
	}
	for range list {
		require.ErrorIs(t, <-outcomes, ErrClosed)
	}
	there, _, err := newClient(t, s).Exists(background, id)
	require.NoError(t, err)
	require.True(t, there)
	letGo()
	eventually(t, func() bool { return s.Links.Count() == 1 && s.Statistics().Leases == 0 },
		func() any { return s.Statistics() })
}
