package store

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/asking"
	"hamr/store/internal/server"
	"hamr/store/internal/wire"
)

var background = context.Background()

func newRuntime(t testing.TB) *gobuffer.Runtime {
	t.Helper()
	r, err := hostAndDevice()
	require.NoError(t, err)
	return r
}

// hostAndDevice is a runtime with a device whose memory other processes' map, too.
func hostAndDevice() (*gobuffer.Runtime, error) {
	return gobuffer.NewRuntime(backendtest.NewFake(backendtest.FakeOptions{}), host.New())
}

// folder is one that nobody else can enter.
func folder(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(name, 0o700))
	return name
}

// served is a server that serves, and what it is made of.
type served struct {
	*Server
	server.Parts
	Options ServerOptions
}

func startServer(t testing.TB, o ServerOptions) *served {
	t.Helper()
	if o.Path == "" && o.Socket == 0 {
		o.Path = filepath.Join(folder(t), "store.sock")
	}
	s, err := Listen(o)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(background) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	})
	return &served{s, s.server.Parts(), o}
}

// hello is a client's greeting.
func hello(t testing.TB) []byte {
	t.Helper()
	machine, err := wire.BootID()
	require.NoError(t, err)
	return asking.Greeting(machine)
}

// waits is for how many objects, and for how many names, requests wait.
func waits(s *served) [2]int {
	s.Lock.Lock()
	defer s.Lock.Unlock()
	ids, names := s.Table.Watch.Waits()
	return [2]int{ids, names}
}

// spilledFile is the descriptor of the file that a server has spilled to, if it is one.
func spilledFile(t testing.TB, s *served) (descriptor int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	var found []int
	for _, entry := range list {
		if name, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.HasPrefix(name, s.Options.Spill+"/") {
			number, err := strconv.Atoi(entry.Name())
			require.NoError(t, err)
			found = append(found, number)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

func newClient(t testing.TB, s *served) *Client {
	t.Helper()
	c, err := Connect(background, s.Path(), newRuntime(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func bytesOf(n int) Description {
	return Description{Type: arrayiface.Uint8, Shape: []int{n}, Allocator: backends.Malloc}
}

// fill writes n to each element.
func fill(t testing.TB, a *gobuffer.Array, n byte) {
	t.Helper()
	buffer, err := gobuffer.Typed[uint8](a)
	require.NoError(t, err)
	require.NoError(t, buffer.FillValue(n))
}

func contents(t testing.TB, a *gobuffer.Array) []byte {
	t.Helper()
	buffer, err := gobuffer.Typed[uint8](a)
	require.NoError(t, err)
	values := make([]byte, a.Size())
	require.NoError(t, buffer.Get(0, values))
	return values
}

// beginObject has an object of a value written, and not sealed.
func beginObject(t testing.TB, c *Client, what Description, value byte) *Builder {
	t.Helper()
	b, err := c.Create(background, what)
	require.NoError(t, err)
	fill(t, b.Array(), value)
	return b
}

// makeObject makes an object of a value.
func makeObject(t testing.TB, c *Client, what Description, value byte) ID {
	t.Helper()
	b := beginObject(t, c, what, value)
	o, err := b.Seal(background)
	require.NoError(t, err)
	require.NoError(t, o.Release())
	return o.ID()
}

// eventually asks until something holds, as what a server is told without an answer is done soon.
func eventually(t testing.TB, what func() bool, describe func() any) {
	t.Helper()
	for range 2000 {
		if what() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	require.Fail(t, "it did not come to be", "%+v", describe())
}

// gone waits until a client's server has no object, and nobody a lease.
func gone(t testing.TB, c *Client) {
	t.Helper()
	var figures Statistics
	eventually(t, func() bool {
		var err error
		figures, err = c.Statistics(background)
		require.NoError(t, err)
		return figures.Objects == 0 && figures.Leases == 0
	}, func() any { return figures })
}

// empty waits until no lease is left and no byte counted beside those that are ready.
func empty(t testing.TB, s *served) {
	t.Helper()
	eventually(t, func() bool {
		f := s.Statistics()
		ok := f.Objects == 0 && f.Leases == 0 && f.Table == 0
		for _, m := range f.Memories {
			ok = ok && m.Used == m.Ready && m.Lingering == 0
		}
		s.Lock.Lock()
		defer s.Lock.Unlock()
		ok = ok && s.Table.Memory.Units == 0
		return ok
	}, func() any { return s.Statistics() })
}

func scaled(n int) int {
	if scale, err := strconv.ParseFloat(os.Getenv("HAMR_TEST_SCALE"), 64); err == nil {
		n = max(1, int(float64(n)*scale))
	}
	return n
}
