package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// standStill stops a process, and returns when it has stopped.
func standStill(t *testing.T, p *os.Process) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	eventually(t, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		require.NoError(t, err)
		return strings.Contains(string(text), ") T ")
	}, func() any { return p.Pid })
}

// TestACallThatIsStoppedIsUndone ends calls by their contexts while the server stands still.
func TestACallThatIsStoppedIsUndone(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	large, small := makeObject(t, c, bytesOf(1<<20), 1), makeObject(t, c, bytesOf(100), 2)
	other, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer other.Close()
	source, err := c.runtime.NewArray(bytesOf(1).Type, []int{200_000}, gobuffer.Options{Allocator: backends.Malloc})
	require.NoError(t, err)
	defer source.Close()
	held, err := other.Get(background, large, GetOptions{})
	require.NoError(t, err)

	limit := func(ctx context.Context, c *Client, call func(context.Context, *Client) error) error {
		timed, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		return call(timed, c)
	}
	limitAll := func(ctx context.Context, c *Client, call func(context.Context, *Client) error) error {
		require.NoError(t, c.SetTimeout(30*time.Millisecond))
		defer func() { require.NoError(t, c.SetTimeout(0)) }()
		return call(ctx, c)
	}
	for name, call := range map[string]func(context.Context, *Client) error{
		"create a small one": func(ctx context.Context, c *Client) error {
			_, err := c.Create(ctx, bytesOf(5000))
			return err
		},
		"create a large one": func(ctx context.Context, c *Client) error {
			_, err := c.Create(ctx, bytesOf(70_000))
			return err
		},
		"create on a device": func(ctx context.Context, c *Client) error {
			_, err := c.Create(ctx, bytesOn(100, 0))
			return err
		},
		"get a large one": func(ctx context.Context, c *Client) error {
			_, err := c.Get(ctx, large, GetOptions{})
			return err
		},
		"get a small one": func(ctx context.Context, c *Client) error {
			_, err := c.Get(ctx, small, GetOptions{})
			return err
		},
		"put": func(ctx context.Context, c *Client) error {
			_, err := c.Put(ctx, source, Description{Allocator: backends.Malloc})
			return err
		},
		"list": func(ctx context.Context, c *Client) error { _, _, err := c.List(ctx, ListOptions{}); return err },
		"wait": func(ctx context.Context, c *Client) error {
			_, err := c.Wait(ctx, []ID{protocol.NewID()}, 1)
			return err
		},
		"connect": func(ctx context.Context, c *Client) error { _, err := Connect(ctx, c.Path(), c.runtime); return err },
	} {
		for i, client := range []*Client{c, other, c, other} {
			ended := limit
			if waits := name == "wait" || name == "connect"; i > 1 && !waits {
				ended = limitAll
			}
			standStill(t, server.Process)
			err := ended(background, client, call)
			require.NoError(t, server.Process.Signal(syscall.SIGCONT))
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			// The reply that nobody waited for is in front of this one's.
			o, err := client.Get(background, small, GetOptions{})
			require.NoError(t, err, name)
			assert.Equal(t, byte(2), contents(t, o.Array())[99], name)
			require.NoError(t, o.Release())
		}
	}
	require.NoError(t, held.Release())
	var figures Statistics
	eventually(t, func() bool {
		_, _, err = c.Exists(background, small)
		require.NoError(t, err)
		figures, err = other.Statistics(background)
		require.NoError(t, err)
		return figures.Objects == 2 && figures.Leases == 0 && figures.Unsealed == 0 && figures.Sessions == 2
	}, func() any { return figures })
	for _, client := range []*Client{c, other} {
		client.mu.Lock()
		assert.Empty(t, client.held)
		client.mu.Unlock()
	}
}

// lookedAt is a context that calls a function before it is asked whether it has ended.
type lookedAt struct {
	context.Context
	look func()
}

func (c lookedAt) Err() error {
	c.look()
	return c.Context.Err()
}

// TestWhatIsSealedForNobodyGoes ends a put and a seal while the server, which has the request, stands
// still: it seals the object all the same.
func TestWhatIsSealedForNobodyGoes(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Client) error{
		"put": func(ctx context.Context, c *Client) error {
			source, err := c.runtime.NewArray(bytesOf(1).Type, []int{200_000}, gobuffer.Options{Allocator: backends.Malloc})
			require.NoError(t, err)
			defer source.Close()
			_, err = c.Put(ctx, source, Description{Allocator: backends.Malloc})
			return err
		},
		"seal": func(ctx context.Context, c *Client) error {
			b, err := c.Create(ctx, bytesOf(200_000))
			require.NoError(t, err)
			_, err = b.Seal(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, ServerOptions{})
			c := newClient(t, s)
			inner, cancel := context.WithTimeout(background, time.Minute)
			defer cancel()
			stands := false
			err := call(lookedAt{inner, func() {
				switch asking := len(c.turn) > 0; {
				case stands && asking:
					cancel()
				case !stands && !asking:
					s.Lock.Lock()
					if stands = len(s.Table.Objects) > 0; !stands {
						s.Lock.Unlock()
					}
				}
			}}, c)
			require.True(t, stands)
			s.Lock.Unlock()
			require.ErrorIs(t, err, context.Canceled)
			eventually(t, func() bool {
				_, _, err := c.Exists(background, protocol.NewID()) // the reply that nobody waited for is in front of this one's
				require.NoError(t, err)
				f := s.Statistics()
				return f.Objects == 0 && f.Leases == 0 && f.Memories[0].Used == 0
			}, func() any { return s.Statistics() })
		})
	}
}

// TestACloseWhileAServerIsLookedFor has a client closed that waits for a new server's first answer.
func TestACloseWhileAServerIsLookedFor(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	standStill(t, server.Process)
	require.NoError(t, c.take(background))
	_ = c.line.Lose(io.EOF)
	c.give()
	ended := make(chan error)
	go func() { _, err := c.Statistics(background); ended <- err }()
	eventually(t, func() bool { return len(c.turn) == 1 }, func() any { return "it does not look for one" })
	require.NoError(t, c.Close())
	require.Equal(t, ErrClosed, <-ended, "and no LostError")
}

// TestACloseWhileAWaitConnects ends what waits as closed, also where the server has not answered the connection for so
// long meanwhile.
func TestACloseWhileAWaitConnects(t *testing.T) {
	server := startServerProcess(t)
	for name, wait := range map[string]func(c *Client) error{
		"a name": func(c *Client) error { _, err := c.GetName(background, "nobody", true); return err },
		"events": func(c *Client) error { _, err := c.Watch(background); return err },
	} {
		c, err := Connect(background, server.Args[2], newRuntime(t))
		require.NoError(t, err)
		require.NoError(t, c.take(background)) // as a call does that Close waits for
		standStill(t, server.Process)
		ended, closed := make(chan error, 1), make(chan error, 1)
		go func() { ended <- wait(c) }()
		time.Sleep(wire.AnswersWithin / 2)
		go func() { closed <- c.Close() }()
		require.ErrorIs(t, <-ended, ErrClosed, name)
		c.give()
		require.NoError(t, <-closed)
		require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	}
}

// TestWhoWaitsLearnsOfAServersDeath has calls that wait end with the server.
func TestWhoWaitsLearnsOfAServersDeath(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	w, err := c.Watch(background)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { _, err := c.Wait(background, []ID{{1}}, 1); ended <- err }()
	go func() { _, err := c.GetName(background, "nobody's", true); ended <- err }()
	go func() { _, err := w.Next(background); ended <- err }()
	eventually(t, func() bool {
		return waits(s) == [2]int{1, 1}
	}, func() any { return "nobody waits" })
	require.NoError(t, s.Close())
	for range 3 {
		require.ErrorAs(t, <-ended, new(*LostError))
	}
}
