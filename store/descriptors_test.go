package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// fewFiles is a path of a server that can open some descriptors.
func fewFiles(t *testing.T, files string) string {
	t.Helper()
	return startServerProcess(t, "0", "", "0", files).Args[2]
}

func connected(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Connect(background, path, newRuntime(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// others makes each kind of connection, and waits for something with a limit of time.
func others(t *testing.T, path string) {
	t.Helper()
	c := connected(t, path)
	w, err := c.Watch(background)
	require.NoError(t, err)
	soon, end := context.WithTimeout(background, 10*time.Millisecond)
	defer end()
	_, err = c.Wait(soon, []ID{protocol.NewID()}, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, w.Close())
}

func TestDescriptorsAreALimit(t *testing.T) {
	path := fewFiles(t, "100")
	c := connected(t, path)
	what := bytesOf(protocol.LargeFrom)
	what.Evictable = true
	for i := range 200 {
		makeObject(t, c, what, byte(i))
	}
	others(t, path)
	f, err := c.Statistics(background)
	require.NoError(t, err)
	assert.Greater(t, f.Evicted, int64(100))
	what.Evictable = false
	var ids []ID
	for err == nil {
		var b *Builder
		if b, err = c.Create(background, what); err == nil {
			var o *Object
			o, err = b.Seal(background)
			require.NoError(t, err)
			ids = append(ids, b.ID())
			require.NoError(t, o.Release())
		}
	}
	var full *FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, protocol.MemoryDescriptors, full.Memory)
	assert.EqualValues(t, 100, full.Limit)
	assert.ErrorContains(t, err, "RLIMIT_NOFILE")
	assert.Greater(t, len(ids), 50)
	others(t, path)
	o, err := c.Get(background, ids[0], GetOptions{})
	require.NoError(t, err)
	require.NoError(t, o.Release())
	require.NoError(t, c.Delete(background, ids[0], false))
	makeObject(t, c, what, 1)
}

// TestDescriptorsThatOthersHave are those of a program that has a server: it cannot count on its share.
func TestDescriptorsThatOthersHave(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 30})
	c := newClient(t, s)
	what := bytesOf(protocol.LargeFrom)
	what.Evictable = true
	first := makeObject(t, c, what, 1)
	free := takeDescriptors(t, 0)
	_, err := c.Create(background, what)
	free()
	require.Error(t, err)
	there, _, err := c.Exists(background, first)
	require.NoError(t, err)
	assert.False(t, there, "it was evicted for its descriptor")
	makeObject(t, c, what, 2)
}

// TestTooManyClients are told why they are turned away, and may come when others have gone.
func TestTooManyClients(t *testing.T) {
	path := fewFiles(t, "40")
	var list []*Client
	var err error
	for err == nil {
		var c *Client
		if c, err = Connect(background, path, newRuntime(t)); err == nil {
			list = append(list, c)
			require.Less(t, len(list), 40)
		}
	}
	var full *FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, protocol.MemoryDescriptors, full.Memory)
	require.ErrorAs(t, list[0].callAside(background, asking.Call{Operation: protocol.OpWait}), &full)
	for _, c := range list {
		require.NoError(t, c.Close())
	}
	eventually(t, func() bool {
		c, err := Connect(background, path, newRuntime(t))
		return err == nil && c.Close() == nil
	}, func() any { return err })
}

// TestAServerWithFewerDescriptors is told of as much as it can keep.
func TestAServerWithFewerDescriptors(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	server := startRun(t, "", "serve", path)
	var c *Client
	eventually(t, func() (ok bool) { var err error; c, err = Connect(background, path, newRuntime(t)); return err == nil },
		func() any { return nil })
	defer c.Close()
	for i := range 100 {
		b := beginObject(t, c, bytesOf(protocol.LargeFrom), byte(i))
		o, err := b.Seal(background)
		require.NoError(t, err)
		defer func() { require.NoError(t, o.Release()) }()
	}
	require.NoError(t, server.Process.Kill())
	require.True(t, killed(server.wait(t)))
	startRun(t, "", "serve", path, "0", "", "0", "60")
	var f Statistics
	eventually(t, func() bool { var err error; f, err = c.Statistics(background); return err == nil },
		func() any { return f })
	assert.GreaterOrEqual(t, f.Objects, int64(25))
	assert.Less(t, f.Objects, int64(60))
	assert.EqualValues(t, f.Objects, f.Leases)
	assert.Zero(t, f.Breaches)
	others(t, path)
}

// takeDescriptors has this process be able to open so many descriptors more, until what it returns is called.
func takeDescriptors(t *testing.T, left int) (free func()) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	most := uint64(len(list) + left)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: limit.Max}))
	var taken []int
	for {
		n, err := unix.Dup(0)
		if err != nil {
			break
		}
		taken = append(taken, n)
	}
	wire.CloseAll(taken[:min(left, len(taken))])
	return func() {
		wire.CloseAll(taken[min(left, len(taken)):])
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	}
}

// TestAClientWithoutDescriptors cannot get or make objects, and has all else as before.
func TestAClientWithoutDescriptors(t *testing.T) {
	path := fewFiles(t, "1000")
	c, maker := connected(t, path), connected(t, path)
	large, small := makeObject(t, maker, bytesOf(protocol.LargeFrom), 1), makeObject(t, maker, bytesOf(100), 2)
	before := beginObject(t, c, bytesOf(protocol.LargeFrom), 3)
	socket := c.line.Socket
	wanting := func(err error) {
		t.Helper()
		var none *DescriptorsError
		require.ErrorAs(t, err, &none)
		require.ErrorIs(t, err, unix.EMFILE)
		require.ErrorContains(t, err, "RLIMIT_NOFILE")
	}
	free := takeDescriptors(t, 0)
	_, err := c.Get(background, large, GetOptions{})
	wanting(err)
	_, err = c.Get(background, small, GetOptions{})
	wanting(err)
	for _, size := range []int{300, protocol.LargeFrom} {
		_, err = c.Create(background, bytesOf(size))
		wanting(err)
	}
	_, err = c.Put(background, before.Array(), bytesOf(0))
	wanting(err)
	_, err = c.Wait(background, []ID{large}, 1)
	wanting(err)
	_, err = c.Watch(background)
	wanting(err)
	_, err = Connect(background, path, c.runtime)
	wanting(err)
	free()
	for id, value := range map[ID]byte{large: 1, small: 2} {
		o, err := c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, value, contents(t, o.Array())[99])
		require.NoError(t, o.Release())
		require.NoError(t, maker.Delete(background, id, false))
	}
	makeObject(t, c, bytesOf(300), 4)
	o, err := before.Seal(background)
	require.NoError(t, err)
	require.NoError(t, o.Release())
	assert.Same(t, socket, c.line.Socket)
	list, _, err := c.List(background, ListOptions{Unsealed: true})
	require.NoError(t, err)
	assert.Len(t, list, 2)
	for _, info := range list {
		require.NoError(t, c.Delete(background, info.ID, false))
	}
	var f Statistics
	eventually(t, func() bool {
		var err error
		f, err = c.Statistics(background)
		return err == nil && f.Objects == 0 && f.Leases == 0
	}, func() any { return f })
	assert.Zero(t, f.Breaches)
}

// TestAMachineWhoseStartCannotBeRead is not taken for another one.
func TestAMachineWhoseStartCannotBeRead(t *testing.T) {
	path := fewFiles(t, "1000")
	known := wire.Boot.Swap(nil)
	defer wire.Boot.Store(known)
	free := takeDescriptors(t, 1)
	_, err := Connect(background, path, newRuntime(t))
	free()
	assert.True(t, errors.Is(err, unix.EMFILE), "%v", err)
}

// The size of the table is FDSize of /proc/self/status.
func TestTheTableOfDescriptorsIsLargeBeforeItIsUsed(t *testing.T) {
	newClient(t, startServer(t, ServerOptions{}))
	size := func() (n int) {
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		_, after, _ := strings.Cut(string(status), "FDSize:")
		_, err = fmt.Sscan(after, &n)
		require.NoError(t, err)
		return n
	}
	most := min(1024, int(wire.FilesLimit()))
	eventually(t, func() bool { return size() >= most }, func() any { return size() })
}
