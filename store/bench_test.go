package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// cycles makes, seals, gets and deletes objects of a KiB.
func cycles(t testing.TB, c *Client, n int) {
	for range n {
		b, err := c.Create(background, bytesOf(1024))
		require.NoError(t, err)
		o, err := b.Seal(background)
		require.NoError(t, err)
		id := o.ID()
		require.NoError(t, o.Release())
		o, err = c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		require.NoError(t, o.Release())
		require.NoError(t, c.Delete(background, id, false))
	}
}

// BenchmarkEightClients is create, seal, get and delete of 1 KiB by eight processes at a time.
func BenchmarkEightClients(b *testing.B) {
	server := startServerProcess(b)
	path := server.Args[2]
	const clients = 8
	var list []*exec.Cmd
	for range clients {
		list = append(list, helper(b, "cycles", path, strconv.Itoa(max(1, b.N/clients))))
	}
	b.ResetTimer()
	for _, p := range list {
		require.NoError(b, p.Start())
	}
	for _, p := range list {
		require.NoError(b, p.Wait())
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	var used time.Duration
	for _, p := range list {
		used += p.ProcessState.UserTime() + p.ProcessState.SystemTime()
	}
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "clients-ns/op")
	require.NoError(b, server.Process.Kill())
	_ = server.Wait()
	used = server.ProcessState.UserTime() + server.ProcessState.SystemTime()
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "server-ns/op")
}

func BenchmarkCycle(b *testing.B) {
	c := newClient(b, startServer(b, ServerOptions{}))
	cycles(b, c, 100)
	b.ResetTimer()
	cycles(b, c, b.N)
}

func BenchmarkGet(b *testing.B) {
	for name, size := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20, "1GiB": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			s := startServer(b, ServerOptions{})
			c, other := newClient(b, s), newClient(b, s)
			builder, err := c.Create(background, bytesOf(size))
			require.NoError(b, err)
			o, err := builder.Seal(background)
			require.NoError(b, err)
			require.NoError(b, o.Release())
			b.ResetTimer()
			for range b.N {
				got, err := other.Get(background, o.ID(), GetOptions{})
				require.NoError(b, err)
				require.NoError(b, got.Release())
			}
		})
	}
}

// BenchmarkPut puts a GiB, with and without memory that is ready. Beside it are copies of a GiB to memory that was used
// before, and to new memory.
func BenchmarkPut(b *testing.B) {
	const size = 1 << 30
	s := startServer(b, ServerOptions{})
	c := newClient(b, s)
	values := make([]byte, size)
	for i := range values {
		values[i] = byte(i)
	}
	r := newRuntime(b)
	require.NoError(b, gobuffer.Use(r.Backends()...))
	source, err := gobuffer.Adopt(values)
	require.NoError(b, err)
	defer source.Close()
	b.Run("put", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			id, err := c.Put(background, source.Array, Description{Allocator: backends.Malloc})
			require.NoError(b, err)
			b.StopTimer()
			require.NoError(b, c.Delete(background, id, false))
			b.StartTimer()
		}
	})
	prepared := startServer(b, ServerOptions{HostLimit: 4 * size, Ready: size})
	other, err := Connect(background, prepared.Path(), r)
	require.NoError(b, err)
	defer other.Close()
	b.Run("put-ready", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			b.StopTimer()
			waitReady(b, prepared, size)
			b.StartTimer()
			id, err := other.Put(background, source.Array, Description{Allocator: backends.Malloc})
			require.NoError(b, err)
			b.StopTimer()
			require.NoError(b, other.Delete(background, id, false))
			b.StartTimer()
		}
	})
	b.Run("put-in-a-row", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			id, err := other.Put(background, source.Array, Description{Allocator: backends.Malloc})
			require.NoError(b, err)
			require.NoError(b, other.Delete(background, id, false))
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(size)
		target := make([]byte, size)
		copy(target, values)
		b.ResetTimer()
		for range b.N {
			copy(target, values)
		}
	})
	b.Run("copy-new", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			target, err := r.NewArray(arrayiface.Uint8, []int{size}, gobuffer.Options{Allocator: backends.Malloc})
			require.NoError(b, err)
			require.NoError(b, target.Write(source.Array))
			b.StopTimer()
			require.NoError(b, target.Close())
			r.DropKept()
			b.StartTimer()
		}
	})
}

// BenchmarkMany is a cycle beside objects that are there already.
func BenchmarkMany(b *testing.B) {
	for _, there := range []int{0, 1_000_000} {
		b.Run(strconv.Itoa(there), func(b *testing.B) {
			c := newClient(b, startServer(b, ServerOptions{TableLimit: 4 << 30}))
			for range there {
				builder, err := c.Create(background, bytesOf(64))
				require.NoError(b, err)
				o, err := builder.Seal(background)
				require.NoError(b, err)
				require.NoError(b, o.Release())
			}
			b.ResetTimer()
			cycles(b, c, b.N)
		})
	}
}

func startServerProcess(t testing.TB, more ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(folder(t), "store.sock")
	p := helper(t, append([]string{"serve", path}, more...)...)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	line := make([]byte, 16)
	n, err := out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "ready", strings.TrimSpace(string(line[:n])))
	return p
}

// helper is this program as another process: see TestMain.
func helper(t testing.TB, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	p := exec.Command(program, arguments...)
	p.Env = append(os.Environ(), "HAMR_STORE_TEST_HELPER=1")
	p.Stderr = os.Stderr
	return p
}

// BenchmarkGetMany gets objects by one call, beside one call for each.
func BenchmarkGetMany(b *testing.B) {
	const count = 137
	for name, size := range map[string]int{"1KiB": 1 << 10, "1MiB": 1 << 20} {
		server := startServerProcess(b)
		c, err := helperClient(server.Args[2])
		require.NoError(b, err)
		maker, err := helperClient(server.Args[2])
		require.NoError(b, err)
		var ids []ID
		for i := range count {
			ids = append(ids, makeObject(b, maker, bytesOf(size), byte(i)))
		}
		end := func(b *testing.B, objects []*Object) {
			b.StopTimer()
			for _, o := range objects {
				require.NoError(b, o.Release())
			}
			_, err = c.Statistics(background)
			require.NoError(b, err)
			b.StartTimer()
		}
		b.Run(name+"/each", func(b *testing.B) {
			for range b.N {
				var objects []*Object
				for _, id := range ids {
					o, err := c.Get(background, id, GetOptions{})
					require.NoError(b, err)
					objects = append(objects, o)
				}
				end(b, objects)
			}
		})
		b.Run(name+"/many", func(b *testing.B) {
			for range b.N {
				objects, err := c.GetMany(background, ids)
				require.NoError(b, err)
				end(b, objects)
			}
		})
		require.NoError(b, c.Close())
		require.NoError(b, maker.Close())
	}
}
