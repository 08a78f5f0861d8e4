package store

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// TestWhatNobodyWaitsForIsUndoneWithoutAnotherCall ends calls by their contexts while the server, which has the
// request, stands still; its client makes no more calls, or has ended when the server goes on.
func TestWhatNobodyWaitsForIsUndoneWithoutAnotherCall(t *testing.T) {
	server := startServerProcess(t)
	r := newRuntime(t)
	watching, err := Connect(background, server.Args[2], r)
	require.NoError(t, err)
	defer watching.Close()
	large, small := makeObject(t, watching, bytesOf(1<<20), 1), makeObject(t, watching, bytesOf(100), 2)
	source, err := r.NewArray(bytesOf(1).Type, []int{200_000}, gobuffer.Options{Allocator: backends.Malloc})
	require.NoError(t, err)
	defer source.Close()
	for name, begin := range map[string]func(t *testing.T, c *Client) func(ctx context.Context) error{
		"create a small one": func(t *testing.T, c *Client) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := c.Create(ctx, bytesOf(5000)); return err }
		},
		"create a large one": func(t *testing.T, c *Client) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := c.Create(ctx, bytesOf(70_000)); return err }
		},
		"put": func(t *testing.T, c *Client) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := c.Put(ctx, source, bytesOf(0)); return err }
		},
		"get a large one": func(t *testing.T, c *Client) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := c.Get(ctx, large, GetOptions{}); return err }
		},
		"get a small one": func(t *testing.T, c *Client) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := c.Get(ctx, small, GetOptions{}); return err }
		},
		"put many": func(t *testing.T, c *Client) func(ctx context.Context) error {
			list := newObjects(t, r, 30, true)
			return func(ctx context.Context) error { _, err := c.PutMany(ctx, list); return err }
		},
		"get many": func(t *testing.T, c *Client) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := c.GetMany(ctx, []ID{large, small, large}); return err }
		},
		"seal": func(t *testing.T, c *Client) func(ctx context.Context) error {
			b, err := c.Create(background, bytesOf(70_000))
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := b.Seal(ctx); return err }
		},
	} {
		for _, ends := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c, err := Connect(background, server.Args[2], r)
				require.NoError(t, err)
				defer c.Close()
				call := begin(t, c)
				standStill(t, server.Process)
				ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
				defer cancel()
				err = call(ctx)
				if ends {
					_ = c.Close()
				}
				require.NoError(t, server.Process.Signal(syscall.SIGCONT))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				var figures Statistics
				eventually(t, func() bool {
					figures, err = watching.Statistics(background)
					require.NoError(t, err)
					return figures.Objects == 2 && figures.Leases == 0
				}, func() any { return figures })
				assert.Zero(t, figures.Breaches)
				if ends {
					return
				}
				// What the late answer brings, as a slab, is there for the next one.
				for range 2 {
					o, err := c.Get(background, small, GetOptions{})
					require.NoError(t, err)
					assert.Equal(t, byte(2), contents(t, o.Array())[99])
					require.NoError(t, o.Release())
					require.NoError(t, watching.Delete(background, makeObject(t, c, bytesOf(5000), 3), false))
				}
			})
		}
	}
}
