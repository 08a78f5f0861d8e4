package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/wire"
)

func openDescriptors(t *testing.T, process int) (open []string) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", process)
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range list {
		name, _ := os.Readlink(filepath.Join(folder, entry.Name())) // none, if it was closed meanwhile
		open = append(open, name)
	}
	return open
}

// TestKills has processes use a store of which one, or the server, is killed: at a step that it is
// told of, or at any time.
func TestKills(t *testing.T) {
	for n := range scaled(len(wire.CrashSteps) + 4) {
		random := rand.New(rand.NewPCG(uint64(n), 3))
		step, inServer := "", random.IntN(3) == 0
		if n%(len(wire.CrashSteps)+4) < len(wire.CrashSteps) {
			step = wire.CrashSteps[n%len(wire.CrashSteps)]
			inServer = strings.HasPrefix(step, "server")
			step = fmt.Sprintf("%s:%d", step, random.IntN(10))
		}
		t.Run(fmt.Sprintf("%d/server=%t/%s", n, inServer, step), func(t *testing.T) {
			t.Parallel() // they wait for processes most of the time
			oneKill(t, random, step, inServer)
		})
	}
}

func oneKill(t *testing.T, random *rand.Rand, step string, inServer bool) {
	path := filepath.Join(folder(t), "store.sock")
	limit := 3 << 20
	if strings.HasPrefix(step, "server-evicting") || strings.HasPrefix(step, "server-spilled") ||
		strings.HasPrefix(step, "server-restored") {
		limit = 1 << 20
		step, _, _ = strings.Cut(step, ":")
	}
	learns := strings.HasPrefix(step, "server-learn")
	if learns || strings.HasPrefix(step, "server-ready:") || strings.HasPrefix(step, "server-taken") {
		step, _, _ = strings.Cut(step, ":") // they are not passed often
	}
	serve := []string{"serve", path, strconv.Itoa(limit)}
	if step != "server-evicting" && random.IntN(2) == 0 || strings.HasPrefix(step, "server-spilled") ||
		strings.HasPrefix(step, "server-restored") {
		serve = append(serve, folder(t))
	}
	at := map[bool]string{inServer: step}
	var ready []string
	if strings.HasPrefix(step, "server-read") || strings.HasPrefix(step, "server-taken") || random.IntN(3) == 0 {
		ready = []string{"", strconv.Itoa(400 << 10)}
	}
	if len(serve) > 3 && ready != nil {
		ready = ready[1:]
	}
	serve = append(serve, ready...)
	later := learns || strings.HasPrefix(step, "server-held") || strings.HasPrefix(step, "client-holding")
	first := at[true]
	if later {
		first = "" // clients tell another server of what they have
	}
	server := startRun(t, first, serve...)
	var others []*run
	for i := range 2 {
		others = append(others, startRun(t, "", "work", path, strconv.Itoa(i), "60"))
	}
	victim := server
	if !inServer {
		victim = startRun(t, at[false], "work", path, "9", "60")
	}
	if later {
		time.Sleep(time.Duration(30+random.IntN(40)) * time.Millisecond)
		_ = server.Process.Kill()
		require.True(t, killed(server.wait(t)))
		server = startRun(t, at[true], serve...)
	}
	if step == "" {
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		_ = victim.Process.Kill()
	}
	if inServer && step == "" {
		require.True(t, killed(server.wait(t)))
		server = startRun(t, "", serve...)
	} else if inServer {
		// The steps may not have been passed often enough: then nothing is killed.
		finished := make(chan struct{})
		go func() {
			for _, p := range others {
				err := <-p.done
				p.done <- err
			}
			close(finished)
		}()
		select {
		case err := <-server.done:
			require.True(t, killed(err), "%v", err)
			t.Log("killed at its step")
			server = startRun(t, "", serve...)
		case <-finished: // the step is still to be passed
			_ = server.Process.Kill()
			require.True(t, killed(server.wait(t)))
			server = startRun(t, "", serve...)
		case <-time.After(60 * time.Second):
			require.Fail(t, "it hangs")
		}
	} else if err := victim.wait(t); err != nil {
		require.True(t, killed(err), "%v", err)
		t.Log("killed at its step")
	}
	for _, p := range others {
		require.NoError(t, p.wait(t))
	}

	var c *Client
	var err error
	eventually(t, func() bool { c, err = Connect(background, path, newRuntime(t)); return err == nil },
		func() any { return err })
	eventually(t, func() bool {
		f, err := c.Statistics(background)
		require.NoError(t, err)
		return f.Sessions == 1 && f.Leases == 0 && f.Unsealed == 0
	}, func() any { f, _ := c.Statistics(background); return f })
	for after := uint64(0); ; {
		list, next, err := c.List(background, ListOptions{Unsealed: true, After: after})
		require.NoError(t, err)
		for _, info := range list {
			o, err := c.Get(background, info.ID, GetOptions{})
			if errors.As(err, new(*FullError)) || errors.As(err, new(*NotFoundError)) {
				continue
			}
			require.NoError(t, err)
			require.NoError(t, errors.Join(whole(o), o.Release()))
		}
		for _, info := range list {
			if err := c.Delete(background, info.ID, false); err != nil {
				require.ErrorAs(t, err, new(*NotFoundError))
			}
		}
		if after = next; next == 0 {
			break
		}
	}
	eventually(t, func() bool {
		f, err := c.Statistics(background)
		require.NoError(t, err)
		ok := f.Objects == 0 && f.Leases == 0 && f.Table == 0 && f.Spilled == 0
		for _, m := range f.Memories {
			ok = ok && m.Used == m.Ready && m.Lingering == 0
		}
		return ok
	}, func() any { f, _ := c.Statistics(background); return f })
	require.NoError(t, c.Close())
	alone := append([]string{"serve", filepath.Join(folder(t), "store.sock")}, serve[2:]...)
	fresh := startRun(t, "", alone...)
	c, err = Connect(background, path, newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	var other *Client
	eventually(t, func() bool {
		other, err = Connect(background, fresh.Args[2], newRuntime(t))
		return err == nil
	}, func() any { return err })
	defer other.Close()
	// As many as a server that has done nothing: no memory, no file is left.
	eventually(t, func() bool {
		return len(openDescriptors(t, server.Process.Pid)) == len(openDescriptors(t, fresh.Process.Pid))
	}, func() any {
		return [2][]string{openDescriptors(t, server.Process.Pid), openDescriptors(t, fresh.Process.Pid)}
	})
	assert.NoError(t, errors.Join(server.Process.Kill(), fresh.Process.Kill()))
}
