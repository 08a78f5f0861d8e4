package store

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/server"
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

func startServer(t testing.TB, o ServerOptions) *server.Server {
	t.Helper()
	if o.Path == "" && o.Socket == 0 {
		o.Path = filepath.Join(folder(t), "store.sock")
	}
	s, err := server.Listen(o)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(background) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	})
	return s
}

func newClient(t testing.TB, s *server.Server) *Client {
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
func empty(t testing.TB, s *server.Server) {
	t.Helper()
	eventually(t, func() bool {
		f := s.Statistics()
		ok := f.Objects == 0 && f.Leases == 0 && f.Table == 0
		for _, m := range f.Memories {
			ok = ok && m.Used == m.Ready && m.Lingering == 0
		}
		s.Mu.Lock()
		defer s.Mu.Unlock()
		ok = ok && s.Open == 0
		return ok
	}, func() any { return s.Statistics() })
}

func scaled(n int) int {
	if scale, err := strconv.ParseFloat(os.Getenv("HAMR_TEST_SCALE"), 64); err == nil {
		n = max(1, int(float64(n)*scale))
	}
	return n
}
