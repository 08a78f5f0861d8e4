package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/links"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// TestALockFileThatWasRemoved has a server go on that has lost its lock file, as by what cleans /tmp.
func TestALockFileThatWasRemoved(t *testing.T) {
	first := startServer(t, ServerOptions{})
	c := newClient(t, first)
	id := makeObject(t, c, bytesOf(100), 7)
	require.NoError(t, os.Remove(first.Path()+".lock"))
	_, err := Listen(ServerOptions{Path: first.Path()})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	assert.ErrorContains(t, err, "a store serves it already")
	there, _, err := newClient(t, first).Exists(background, id)
	require.NoError(t, err)
	assert.True(t, there)
}

// TestASocketThatWasRemoved has another server take the path: the end of the first takes nothing of its.
func TestASocketThatWasRemoved(t *testing.T) {
	first := startServer(t, ServerOptions{})
	require.NoError(t, os.Remove(first.Path()))
	require.NoError(t, os.Remove(first.Path()+".lock"))
	second := startServer(t, ServerOptions{Path: first.Path()})
	require.NoError(t, first.Close())
	_, _, err := newClient(t, second).Exists(background, protocol.NewID())
	require.NoError(t, err)
	require.NoError(t, second.Close())
	assert.NoFileExists(t, first.Path())
}

// TestALockEndsWithItsServer though another process has a copy of the descriptor, as a forked child.
func TestALockEndsWithItsServer(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	first, err := Listen(ServerOptions{Path: path})
	require.NoError(t, err)
	for _, descriptor := range first.server.Parts().Descriptors {
		copied, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		defer unix.Close(copied)
	}
	require.NoError(t, first.Close())
	_, err = Connect(background, path, newRuntime(t))
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	second := startServer(t, ServerOptions{Path: path})
	newClient(t, second)
}

// TestAServerThatDoesNotAnswer is one whose socket somebody has, and nobody reads.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	l, err := links.Listen(path)
	require.NoError(t, err)
	defer l.Close()
	_, err = Connect(background, path, newRuntime(t))
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	assert.ErrorContains(t, err, "has not answered")
	// One that waits is as many as a backlog of none has room for.
	require.NoError(t, unix.Listen(l.Descriptor, 0))
	_, err = Connect(background, path, newRuntime(t))
	require.ErrorAs(t, err, &lost)
	assert.ErrorContains(t, err, "nobody has accepted the connection")
}

// TestDescriptorsThatAForkedChildCloses are a server's, as long as it has them.
func TestDescriptorsThatAForkedChildCloses(t *testing.T) {
	is := func(descriptor int) bool { return wire.Bits[descriptor/64+1].Load()>>(descriptor%64)&1 == 1 }
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	makeObject(t, c, bytesOf(100_000), 1)
	has := append(s.Descriptors, s.Links.Poll.Descriptor, s.Links.Poll.Wake, c.line.Socket.Descriptor)
	s.Lock.Lock()
	for _, o := range s.Table.Objects {
		has = append(has, o.Unit.Descriptor.Number)
	}
	s.Lock.Unlock()
	for _, k := range s.Links.Here() {
		has = append(has, k.Socket)
	}
	require.Len(t, has, 7)
	for i, descriptor := range has {
		assert.True(t, is(descriptor), i)
	}
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	for i, descriptor := range has {
		assert.False(t, is(descriptor), i)
	}
	for descriptor := range 64 * int(wire.Bits[0].Load()) {
		if is(descriptor) { // else the child would close one of its own
			_, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0)
			assert.NoError(t, err, descriptor)
		}
	}
}
