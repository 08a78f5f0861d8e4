package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// linked is a server's connection, and its other end; process stands for that of the peer.
func linked(t *testing.T, s *Server, process int) (k *link, other *waitingSocket) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	k = &link{socket: ends[0], process: process}
	k.conversation = &conversation{server: s, transport: k, hang: k.hang}
	require.True(t, s.links.add(k, 1<<20))
	return k, &waitingSocket{descriptor: ends[1], control: make([]byte, controlBytes)}
}

// answering is a server without a socket that answers what it is linked to.
func answering(t *testing.T) *Server {
	t.Helper()
	s, err := newServer(ServerOptions{})
	require.NoError(t, err)
	s.links, err = newLinks()
	require.NoError(t, err)
	s.lead()
	t.Cleanup(func() {
		s.links.finish()
		s.connections.Wait()
		require.NoError(t, s.links.poll.close())
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

func (l *links) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

func TestTheConnectionOfADeadProcessEnds(t *testing.T) {
	s := answering(t)
	_, living := linked(t, s, readable(t, 0))
	defer living.close()
	_, dead := linked(t, s, readable(t, 1))
	defer dead.close()
	eventually(t, func() bool { return s.links.count() == 1 }, func() any { return s.links.count() })
	require.ErrorIs(t, dead.send([]byte{0}, nil), unix.EPIPE)
	require.NoError(t, living.send(greeting(), nil))
}

// A process ends while its connection does, and the next connection's descriptor has the same number.
func TestADeathIsNobodyElses(t *testing.T) {
	s := answering(t)
	for range scaled(5_000) {
		_, gone := linked(t, s, readable(t, 1))
		gone.close()
		_, next := linked(t, s, readable(t, 0))
		require.NoError(t, next.send(greeting(), nil))
		n, _, err := next.receive(make([]byte, 1024))
		require.NoError(t, err)
		require.Positive(t, n)
		next.close()
	}
	eventually(t, func() bool { return s.links.count() == 0 }, func() any { return s.links.count() })
}

// TestWhoBreaksARuleIsToldWhich has more requests wait behind the one that does.
func TestWhoBreaksARuleIsToldWhich(t *testing.T) {
	s := startServer(t, ServerOptions{})
	server := startServerProcess(t)
	for _, path := range []string{s.Path(), server.Args[2]} {
		socket, err := dial(path)
		require.NoError(t, err)
		standing := path != s.Path()
		if standing {
			standStill(t, server.Process)
		}
		require.NoError(t, socket.send(greeting(), nil))
		for range 20 {
			_ = socket.send(greeting(), nil)
		}
		if standing {
			require.NoError(t, server.Process.Signal(unix.SIGCONT))
		}
		buffer := make([]byte, 1024)
		_, _, err = socket.receive(buffer)
		require.NoError(t, err, "the greeting's reply")
		n, _, err := socket.receive(buffer)
		require.NoError(t, err)
		f, _, err := nextFrame(buffer[:n])
		require.NoError(t, err)
		require.ErrorContains(t, decodeError(f.status, &decoder{rest: f.payload}), "a second greeting")
		socket.close()
	}
}

// TestOthersAreAnsweredWhileOneIsNot has a request take long, and another one come to an end meanwhile.
func TestOthersAreAnsweredWhileOneIsNot(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20, Spill: folder(t)})
	slow, other := newClient(t, s), newClient(t, s)
	id := makeObject(t, slow, bytesOf(100_000), 1)
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	s.mu.Lock()
	unit := s.objects[id].unit
	require.NoError(t, s.spill(unit))
	unit.moving = true // as by one that brings it back, and takes its time
	s.mu.Unlock()
	over := make(chan error, 1)
	go func() {
		o, err := slow.Get(background, id, GetOptions{})
		if err == nil {
			err = o.Release()
		}
		over <- err
	}()
	eventually(t, func() bool { return len(s.links.here()) == 1 }, func() any { return s.links.here() })
	for range 3 {
		there, _, err := other.Exists(background, id)
		require.NoError(t, err)
		require.True(t, there)
	}
	select {
	case err := <-over:
		require.Fail(t, "it is over", "%v", err)
	default:
	}
	s.mu.Lock()
	unit.moving = false
	s.moved.Broadcast()
	s.mu.Unlock()
	require.NoError(t, <-over)
	there, _, err := slow.Exists(background, id)
	require.NoError(t, err)
	assert.True(t, there)
	assert.Len(t, s.links.here(), 2)
}
