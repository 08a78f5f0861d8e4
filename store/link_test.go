package store

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/server"
	"hamr/store/internal/wire"
)

// linked is a server's connection, and its other end; process stands for that of the peer.
func linked(t *testing.T, s *server.Server, process int) (k *server.Link, other *wire.WaitingSocket) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	k = &server.Link{Socket: ends[0], Process: process}
	k.Conversation = &server.Conversation{Server: s, Transport: k, Hang: k.Hang}
	require.NoError(t, s.Links.Add(k, 1<<20))
	return k, &wire.WaitingSocket{Descriptor: ends[1], Control: make([]byte, wire.ControlBytes)}
}

// answering is a server without a socket that answers what it is linked to.
func answering(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.NewServer(ServerOptions{})
	require.NoError(t, err)
	s.Links, err = server.NewLinks()
	require.NoError(t, err)
	s.Lead()
	t.Cleanup(func() {
		s.Links.Finish()
		s.Connections.Wait()
		require.NoError(t, s.Links.Poll.Close())
	})
	return s
}

// readable is a descriptor as of a process, which has ended or lives.
func readable(t *testing.T, is uint) int {
	t.Helper()
	descriptor, err := unix.Eventfd(is, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	return descriptor
}

func countLinks(l *server.Links) int {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return len(l.Open)
}

func TestTheConnectionOfADeadProcessEnds(t *testing.T) {
	s := answering(t)
	_, living := linked(t, s, readable(t, 0))
	defer living.Close()
	_, dead := linked(t, s, readable(t, 1))
	defer dead.Close()
	eventually(t, func() bool { return countLinks(s.Links) == 1 }, func() any { return countLinks(s.Links) })
	require.ErrorIs(t, dead.Send([]byte{0}, nil), unix.EPIPE)
	require.NoError(t, living.Send(greeting(), nil))
}

// A process ends while its connection does, and the next connection's descriptor has the same number.
func TestADeathIsNobodyElses(t *testing.T) {
	s := answering(t)
	for range scaled(5_000) {
		_, gone := linked(t, s, readable(t, 1))
		gone.Close()
		_, next := linked(t, s, readable(t, 0))
		require.NoError(t, next.Send(greeting(), nil))
		n, _, err := next.Receive(make([]byte, 1024))
		require.NoError(t, err)
		require.Positive(t, n)
		next.Close()
	}
	eventually(t, func() bool { return countLinks(s.Links) == 0 }, func() any { return countLinks(s.Links) })
}

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
		require.NoError(t, socket.Send(greeting(), nil))
		for range 20 {
			_ = socket.Send(greeting(), nil)
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

// TestADeathIsToldOfALinkThatAnotherOneEnds has the numbers of its descriptors be others' meanwhile.
func TestADeathIsToldOfALinkThatAnotherOneEnds(t *testing.T) {
	s := answering(t)
	k, other := linked(t, s, readable(t, 0))
	defer other.Close()
	l := &server.Leader{Server: s}
	l.End(k, nil)
	var later []*wire.WaitingSocket
	for range 2 {
		_, next := linked(t, s, -1)
		defer next.Close()
		later = append(later, next)
	}
	l.Hear(k, true)
	soon, end := context.WithTimeout(background, 10*time.Second)
	defer end()
	for _, each := range later {
		each.Stopped = soon.Err
		require.NoError(t, each.Send(greeting(), nil))
		n, _, err := each.Receive(make([]byte, 1024))
		require.NoError(t, err)
		require.Positive(t, n)
	}
}

// TestAClosedConnectionIsNoticed though another process has the server's descriptor of it.
func TestAClosedConnectionIsNoticed(t *testing.T) {
	s := answering(t)
	k, other := linked(t, s, -1)
	defer other.Close()
	kept, err := unix.Dup(k.Socket)
	require.NoError(t, err)
	defer unix.Close(kept)
	other.Stopped = func() error { return errors.New("nobody has noticed") }
	(&server.Leader{Server: s}).End(k, nil)
	_, _, err = other.Receive(make([]byte, 1024))
	require.ErrorIs(t, err, io.EOF)
}

// away has requests of clients be away, all for one object, until they are let go.
func away(t *testing.T, clients int) (s *server.Server, list []*Client, id ID, letGo func(), outcomes chan error) {
	t.Helper()
	s = startServer(t, ServerOptions{HostLimit: 1 << 20, Spill: folder(t)})
	for range clients {
		list = append(list, newClient(t, s))
	}
	id = makeObject(t, list[0], bytesOf(100_000), 1)
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	s.Mu.Lock()
	unit := s.Objects[id].Unit
	require.NoError(t, s.Spill(unit))
	unit.Moving = true // as by one that brings it back, and takes its time
	s.Mu.Unlock()
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
		s.Mu.Lock()
		defer s.Mu.Unlock()
		unit.Moving = false
		s.Moved.Broadcast()
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
	assert.Zero(t, countLinks(s.Links))
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
	eventually(t, func() bool { return countLinks(s.Links) == 1 && s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
}
