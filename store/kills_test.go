package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
)

// expected reports whether an error is one that others may cause at any time.
func expected(err error) bool {
	return errors.As(err, new(*NotFoundError)) || errors.As(err, new(*NotSealedError)) || errors.As(err, new(*DeletedError)) ||
		errors.As(err, new(*FullError)) || errors.As(err, new(*NameTakenError)) || errors.As(err, new(*LostError)) || errors.As(err, new(*SealedError))
}

// whole returns an error unless an object holds what its maker meant it to before it was sealed.
func whole(o *Object) error {
	var value byte
	if _, err := fmt.Sscan(string(o.Info().Metadata), &value); err != nil {
		return fmt.Errorf("metadata %q: %w", o.Info().Metadata, err)
	}
	buffer, err := gobuffer.Typed[uint8](o.Array())
	if err != nil {
		return err
	}
	values := make([]byte, buffer.Size())
	if err := buffer.Get(0, values); err != nil {
		return err
	}
	for i, got := range values {
		if got != value {
			return fmt.Errorf("%v is torn: element %d of %d is %d, not %d", o, i, len(values), got, value)
		}
	}
	return nil
}

// workHelper uses a store at random, while other processes do and die.
func workHelper(arguments []string) error {
	seed, _ := strconv.ParseUint(arguments[1], 10, 64)
	steps, _ := strconv.Atoi(arguments[2])
	random := rand.New(rand.NewPCG(seed, 2))
	var c *Client
	var err error
	for range 2000 {
		if c, err = helperClient(arguments[0]); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	var kept []*Object
	lost := 0
	for i := 0; i < steps; i++ {
		err := work(c, random, &kept)
		if errors.As(err, new(*LostError)) {
			if lost++; lost > 4000 {
				return err
			}
			time.Sleep(2 * time.Millisecond)
			i--
		} else if err != nil && !expected(err) {
			return err
		}
	}
	for _, o := range kept {
		if err := errors.Join(whole(o), o.Release()); err != nil {
			return err
		}
	}
	return c.Close()
}

func work(c *Client, random *rand.Rand, kept *[]*Object) error {
	some := func() (ID, error) {
		list, _, err := c.List(background, ListOptions{})
		if err != nil || len(list) == 0 {
			return newID(), err
		}
		return list[random.IntN(len(list))].ID, nil
	}
	keep := func(o *Object) error {
		if err := whole(o); err != nil {
			return err
		}
		*kept = append(*kept, o)
		if len(*kept) > 8 {
			i := random.IntN(len(*kept))
			o = (*kept)[i]
			*kept = append((*kept)[:i], (*kept)[i+1:]...)
			return errors.Join(whole(o), o.Release())
		}
		return nil
	}
	switch random.IntN(4) {
	case 0, 1:
		value := byte(random.IntN(256))
		what := bytesOf([]int{10, 1000, 30_000, 100_000, 400_000}[random.IntN(5)])
		what.Metadata = []byte(strconv.Itoa(int(value)))
		what.Evictable = random.IntN(2) == 0
		if random.IntN(3) == 0 {
			what.Allocator = backends.CUDA
		}
		b, err := c.Create(background, what)
		if err != nil {
			return err
		}
		buffer, err := gobuffer.Typed[uint8](b.Array())
		if err != nil {
			return err
		}
		if err := buffer.FillValue(value); err != nil {
			return err
		}
		if random.IntN(6) == 0 {
			return b.Abort(background)
		}
		o, err := b.Seal(background)
		if err != nil {
			return err
		}
		if random.IntN(4) == 0 {
			if err := c.PutName(background, strconv.Itoa(random.IntN(5)), o.ID(), true); err != nil && !expected(err) {
				return err
			}
		}
		return keep(o)
	case 2:
		id, err := some()
		if err != nil {
			return err
		}
		o, err := c.Get(background, id, GetOptions{})
		if err != nil {
			return err
		}
		return keep(o)
	}
	id, err := some()
	if err != nil {
		return err
	}
	return c.Delete(background, id, random.IntN(3) == 0)
}

// run is a process that a test waits for.
type run struct {
	*exec.Cmd
	done chan error
}

func startRun(t *testing.T, crashAt string, arguments ...string) *run {
	t.Helper()
	p := helper(t, arguments...)
	if crashAt != "" {
		p.Env = append(p.Env, "HAMR_STORE_CRASH_AT="+crashAt)
	}
	require.NoError(t, p.Start())
	r := &run{p, make(chan error, 1)}
	go func() { r.done <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return r
}

// wait returns how the process has ended; one that hangs is a failure.
func (r *run) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(90 * time.Second):
		_ = r.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		require.Fail(t, "a process hangs", r.Args)
		return nil
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func openDescriptors(t *testing.T, process int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", process))
	require.NoError(t, err)
	return len(list)
}

// TestKills has processes use a store of which one, or the server, is killed: at a step that it is
// told of, or at any time.
func TestKills(t *testing.T) {
	for n := range scaled(len(crashSteps) + 4) {
		random := rand.New(rand.NewPCG(uint64(n), 3))
		step, inServer := "", random.IntN(3) == 0
		if n%(len(crashSteps)+4) < len(crashSteps) {
			step = crashSteps[n%len(crashSteps)]
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
	if strings.HasPrefix(step, "server-evicting") || strings.HasPrefix(step, "server-spilled") || strings.HasPrefix(step, "server-restored") {
		limit = 1 << 20
		step, _, _ = strings.Cut(step, ":")
	}
	serve := []string{"serve", path, strconv.Itoa(limit)}
	if step != "server-evicting" && random.IntN(2) == 0 || strings.HasPrefix(step, "server-spilled") || strings.HasPrefix(step, "server-restored") {
		serve = append(serve, folder(t))
	}
	at := map[bool]string{inServer: step}
	later := strings.HasPrefix(step, "server-held") || strings.HasPrefix(step, "client-holding")
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
	eventually(t, func() bool { c, err = Connect(background, path, newRuntime(t)); return err == nil }, func() any { return err })
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
			ok = ok && m.Used == 0 && m.Lingering == 0
		}
		return ok
	}, func() any { f, _ := c.Statistics(background); return f })
	require.NoError(t, c.Close())
	fresh := startRun(t, "", "serve", filepath.Join(folder(t), "store.sock"))
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
		return openDescriptors(t, server.Process.Pid) == openDescriptors(t, fresh.Process.Pid)
	}, func() any {
		return [2]int{openDescriptors(t, server.Process.Pid), openDescriptors(t, fresh.Process.Pid)}
	})
	assert.NoError(t, errors.Join(server.Process.Kill(), fresh.Process.Kill()))
}

func TestAServersDeath(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	server := startRun(t, "", "serve", path)
	var c *Client
	eventually(t, func() (ok bool) { var err error; c, err = Connect(background, path, newRuntime(t)); return err == nil }, func() any { return nil })
	defer c.Close()
	var objects []*Object
	for _, size := range []int{0, 50, 1000, 1 << 20} {
		id := makeObject(t, c, bytesOf(size), 5)
		o, err := c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		objects = append(objects, o)
	}
	require.NoError(t, c.PutName(background, "it", objects[3].ID(), false))
	forgotten := makeObject(t, c, bytesOf(70_000), 6)
	var builders []*Builder
	for _, size := range []int{40, 1 << 20} {
		b, err := c.Create(background, bytesOf(size))
		require.NoError(t, err)
		builders = append(builders, b)
	}
	require.NoError(t, server.Process.Kill())
	require.True(t, killed(server.wait(t)))
	_, _, err := c.Exists(background, forgotten)
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	assert.Equal(t, path, lost.Path)
	for _, o := range objects {
		for _, v := range contents(t, o.Array()) {
			require.Equal(t, byte(5), v)
		}
	}
	startRun(t, "", "serve", path)
	eventually(t, func() bool { _, _, err = c.Exists(background, forgotten); return err == nil }, func() any { return err })
	other, err := Connect(background, path, newRuntime(t))
	require.NoError(t, err)
	defer other.Close()
	for _, o := range objects {
		got, err := other.Get(background, o.ID(), GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, contents(t, o.Array()), contents(t, got.Array()))
		require.NoError(t, got.Release())
	}
	there, _, err := other.Exists(background, forgotten)
	require.NoError(t, err)
	assert.False(t, there, "nobody had it")
	id, err := other.GetName(background, "it", false)
	require.NoError(t, err)
	assert.Equal(t, objects[3].ID(), id)
	for _, b := range builders {
		fill(t, b.Array(), 8)
		o, err := b.Seal(background)
		require.NoError(t, err)
		got, err := other.Get(background, o.ID(), GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, byte(8), contents(t, got.Array())[30])
		objects = append(objects, got, o)
	}
	for _, o := range objects {
		require.NoError(t, o.Release())
	}
	list, _, err := other.List(background, ListOptions{Unsealed: true})
	require.NoError(t, err)
	for _, info := range list {
		require.NoError(t, other.Delete(background, info.ID, false))
	}
	eventually(t, func() bool {
		_, _, err := c.Exists(background, forgotten) // with the reply it learns which slabs are gone
		require.NoError(t, err)
		f, err := other.Statistics(background)
		require.NoError(t, err)
		return f.Objects == 0 && f.Leases == 0 && f.Memories[0].Used == 0 && f.Memories[0].Lingering == 0
	}, func() any { f, _ := other.Statistics(background); return f })
}
