package server_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store"
	"hamr/store/internal/server"
	"hamr/store/internal/wire"
)

// TestAClientThatLies sends a living server packets of any kind, beside a client that does not.
func TestAClientThatLies(t *testing.T) {
	background := context.Background()
	folder := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(folder, 0o700))
	s, err := store.Listen(store.ServerOptions{Path: filepath.Join(folder, "store.sock"), HostLimit: 8 << 20})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(background) }()
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	require.NoError(t, gobuffer.Use(r.Backends()...))
	good, err := store.Connect(background, s.Path(), r)
	require.NoError(t, err)
	source, err := gobuffer.Adopt(bytes.Repeat([]byte{3}, 1000))
	require.NoError(t, err)
	id, err := good.Put(background, source.Array, store.Description{Allocator: backends.Malloc})
	require.NoError(t, err)
	require.NoError(t, source.Close())
	require.NoError(t, good.Pin(background, id))
	random := rand.New(rand.NewPCG(1, 2))
	seeds := server.SeedFrames()
	pipe := make([]int, 2)
	require.NoError(t, unix.Pipe2(pipe, unix.O_CLOEXEC))
	defer wire.CloseAll(pipe)
	for range server.Scaled(300) {
		socket, err := wire.Dial(s.Path())
		require.NoError(t, err)
		if random.IntN(10) > 0 {
			require.NoError(t, socket.Send(server.Greeting(), nil))
		}
		for range random.IntN(10) {
			var sent []int
			if random.IntN(3) == 0 {
				for range 1 + random.IntN(8) {
					sent = append(sent, pipe[0])
				}
			}
			if socket.Send(server.Lie(random, seeds), sent) != nil {
				break
			}
		}
		socket.Close()
		o, err := good.Get(background, id, store.GetOptions{})
		require.NoError(t, err)
		typed, err := gobuffer.Typed[uint8](o.Array())
		require.NoError(t, err)
		last := make([]byte, 1)
		require.NoError(t, typed.Get(999, last))
		require.Equal(t, byte(3), last[0])
		require.NoError(t, o.Release())
	}
	server.Eventually(t, func() bool { return s.Statistics().Breaches > 0 }, func() any { return s.Statistics() })
	server.Eventually(t, func() bool { return s.Statistics().Sessions == 1 }, func() any { return s.Statistics() })
	require.NoError(t, good.Close())
	require.NoError(t, s.Close())
	require.NoError(t, <-done)
}
