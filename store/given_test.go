package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/wire"
)

// listening is a socket that somebody else has made, who goes on listening.
func listening(t *testing.T, kind int, path string) int {
	t.Helper()
	descriptor, err := unix.Socket(unix.AF_UNIX, kind, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(descriptor) })
	require.NoError(t, unix.Bind(descriptor, &unix.SockaddrUnix{Name: path}))
	require.NoError(t, unix.Listen(descriptor, 10))
	return descriptor
}

func copyOf(t *testing.T, descriptor int) int {
	t.Helper()
	other, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 3)
	require.NoError(t, err)
	return other
}

// TestASocketThatListensAlready has two servers follow each other at one, with a client that came between them.
func TestASocketThatListensAlready(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	socket := listening(t, unix.SOCK_SEQPACKET, path)
	first := startServer(t, ServerOptions{Socket: copyOf(t, socket)})
	assert.Equal(t, path, first.Path())
	c := newClient(t, first)
	id := makeObject(t, c, bytesOf(100), 7)
	o, err := c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	_, err = Listen(ServerOptions{Path: path})
	require.ErrorAs(t, err, new(*RefusedError))
	require.NoError(t, first.Close())
	assert.FileExists(t, path)

	waits := make(chan error, 1)
	go func() {
		other, err := Connect(background, path, newRuntime(t))
		if err == nil {
			err = other.Close()
		}
		waits <- err
	}()
	second := startServer(t, ServerOptions{Path: path, Socket: copyOf(t, socket)})
	require.NoError(t, <-waits)
	again, err := newClient(t, second).Get(background, id, GetOptions{Wait: true})
	require.NoError(t, err)
	require.NoError(t, errors.Join(again.Release(), o.Release()))
}

// TestASocketThatIsNone is refused, and left as it was.
func TestASocketThatIsNone(t *testing.T) {
	at := folder(t)
	file, err := os.Create(filepath.Join(at, "file"))
	require.NoError(t, err)
	defer file.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	require.NoError(t, err)
	defer wire.CloseAll(pair[:])
	stream := listening(t, unix.SOCK_STREAM, filepath.Join(at, "stream"))
	nowhere := listening(t, unix.SOCK_SEQPACKET, "@hamr-"+filepath.Base(filepath.Dir(at)))
	for want, descriptor := range map[string]int{
		"no socket": int(file.Fd()), "a socket that does not listen": pair[0], "another kind of socket": stream,
		"a socket without a path": nowhere,
	} {
		_, err := Listen(ServerOptions{Socket: descriptor})
		require.ErrorAs(t, err, new(*ArgumentError))
		require.ErrorContains(t, err, want)
		_, err = unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0)
		require.NoError(t, err)
	}
	_, err = Listen(ServerOptions{Socket: -1})
	require.ErrorContains(t, err, "Socket")
	path := filepath.Join(at, "right")
	_, err = Listen(ServerOptions{Socket: listening(t, unix.SOCK_SEQPACKET, path), Path: filepath.Join(at, "wrong")})
	require.ErrorContains(t, err, path)
}
